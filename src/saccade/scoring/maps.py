"""Where maps come from: files, records, arrays in memory, or a stream of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from saccade.data.maps.arrays import SUFFIXES, as_map, npy_header
from saccade.data.maps.members import SEPARATOR, Members, by_short_name, open_members
from saccade.errors import DataError, SaccadeError, ShapeError
from saccade.untrusted import open_regular

AT_ONCE = 256
"""Maps of one size that are scored together."""


@dataclass(frozen=True)
class Chunk:
    """Maps of one size, by name; or what is wrong with the one map of that name."""

    names: list[str]
    maps: Tensor | SaccadeError
    """(B,h,w)."""


class Maps(Protocol):
    """Maps by name."""

    where: str
    """As it is told."""
    ignored: int
    """Files that hold no map by their suffix."""

    is_stacked: bool
    """Whether all have one size, so that many are read together."""
    is_fixed: bool
    """Whether they have their names already."""

    def paths(self) -> list[str] | None:
        """What the maps are called before they are named, see :mod:`saccade.data.maps.members`; None: not known yet."""

    def name(self, short: bool) -> None:
        """Call maps by the last part of their path, or by all of it."""

    def each(self, at_once: int, first: Iterable[str] = ()) -> Iterator[Chunk]:
        """All maps, at most ``at_once`` together; read one by one, those called ``first`` before the others."""

    def read(self, name: str) -> Tensor | None:
        """One map (h,w) again; None where it is gone."""


class _Files:
    """Maps that are read one by one."""

    is_stacked, is_fixed = False, False

    def __init__(self, where: str, paths: list[str], ignored: int) -> None:
        self.where, self.ignored, self._paths = where, ignored, paths
        self._names: dict[str, str] = {}

    def paths(self) -> list[str] | None:
        return self._paths

    def name(self, short: bool) -> None:
        self._names = by_short_name(self._paths, short)

    def each(self, at_once: int, first: Iterable[str] = ()) -> Iterator[Chunk]:
        for name in _in_order(self._names, first):
            try:
                yield Chunk([name], self._read(self._names[name])[None])
            except SaccadeError as error:
                yield Chunk([name], error)

    def read(self, name: str) -> Tensor | None:
        return self._read(self._names[name]) if name in self._names else None

    def _read(self, path: str) -> Tensor:
        raise NotImplementedError


class FileMaps(_Files):
    """Maps of a folder, an archive or a file of several arrays."""

    def __init__(self, members: Members, key: str | None) -> None:
        self._members, self._key = members, key
        super().__init__(members.where, members.names, members.ignored)

    def _read(self, path: str) -> Tensor:
        return torch.from_numpy(as_map(self._members.read(path, self._key, grey=True), path))


class RecordMaps(_Files):
    """The total maps of records that ``saccade look --out`` wrote; the drawings beside them are no maps.

    ``PICTURE-ask-QUESTION`` is called as other maps are, ``PICTURE__QUESTION``.
    """

    def __init__(self, folder: Path, stems: Sequence[str]) -> None:
        self._folder = folder
        self._stems = {stem.replace("-ask-", SEPARATOR): stem for stem in stems}
        super().__init__(str(folder), list(self._stems), 0)

    def _read(self, path: str) -> Tensor:
        from saccade.record import read_record

        trace = read_record(self._folder / f"{self._stems[path]}.json").trace
        if not trace.looks_of_total:
            raise DataError(f"{path}: its looks lie on no picture")
        return trace.image_map("total")[0].float()  # (H,W)


class StackMaps:
    """Maps (N,h,w) in memory or in one .npy file, called by their numbers, or by names."""

    is_stacked, is_fixed = True, True

    def __init__(self, maps: Any, names: Sequence[str] | None, where: str = "maps in memory") -> None:
        if maps.ndim == 4 and maps.shape[1] == 1:
            maps = maps[:, 0]  # (N,h,w)
        if maps.ndim != 3 or maps.shape[1] * maps.shape[2] == 0:
            raise ShapeError("maps", "(N,H,W) with at least one pixel", maps.shape)
        self._maps, self.where, self.ignored = maps, where, 0
        self._numbers = {name: at for at, name in enumerate(numbered(len(maps)) if names is None else names)}
        if len(self._numbers) != len(maps):
            raise DataError(
                f"maps: {len(maps)} maps and {len(self._numbers)} different names; each needs one of its own"
            )

    def paths(self) -> list[str] | None:
        """See :class:`Maps`."""
        return list(self._numbers)

    def name(self, short: bool) -> None:
        """They have their names."""

    def each(self, at_once: int, first: Iterable[str] = ()) -> Iterator[Chunk]:
        """See :class:`Maps`."""
        if at_once == 1:
            yield from (Chunk([name], self._at(self._numbers[name])) for name in _in_order(self._numbers, first))
            return
        names = list(self._numbers)
        for start in range(0, len(names), at_once):
            some = slice(start, start + at_once)
            yield Chunk(names[some], stack_tensor(self._maps[some]))

    def read(self, name: str) -> Tensor | None:
        """See :class:`Maps`."""
        at = self._numbers.get(name)
        return None if at is None else self._at(at)[0]

    def _at(self, number: int) -> Tensor:
        return stack_tensor(self._maps[number : number + 1])  # (1,h,w)


class MappingMaps:
    """Maps (h,w) in memory, by name, of any sizes."""

    is_stacked, is_fixed = False, True

    def __init__(self, maps: Mapping[str, Any]) -> None:
        self._maps, self.where, self.ignored = {str(name): found for name, found in maps.items()}, "maps in memory", 0
        if len(self._maps) != len(maps):
            raise DataError(f"maps: {len(maps)} maps and {len(self._maps)} different names; each needs one of its own")

    def paths(self) -> list[str] | None:
        """See :class:`Maps`."""
        return list(self._maps)

    def name(self, short: bool) -> None:
        """They have their names."""

    def each(self, at_once: int, first: Iterable[str] = ()) -> Iterator[Chunk]:
        """See :class:`Maps`."""
        for name in _in_order(self._maps, first):
            yield one_map(name, self._maps[name])

    def read(self, name: str) -> Tensor | None:
        """See :class:`Maps`."""
        return as_tensor(self._maps[name], name) if name in self._maps else None


class StreamMaps:
    """Maps that come once, one after the other: pairs of a name and a map (h,w), or maps alone, which are numbered."""

    is_stacked, is_fixed = False, True

    def __init__(self, maps: Iterable[Any]) -> None:
        self._maps, self.where, self.ignored = maps, "maps in memory", 0

    def paths(self) -> list[str] | None:
        """See :class:`Maps`."""
        return None

    def name(self, short: bool) -> None:
        """They have their names."""

    def each(self, at_once: int, first: Iterable[str] = ()) -> Iterator[Chunk]:
        """See :class:`Maps`; they come as they come."""
        for number, found in enumerate(self._maps):
            is_pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], str)
            yield one_map(*found) if is_pair else one_map(numbered_name(number), found)

    def read(self, name: str) -> Tensor | None:
        """See :class:`Maps`."""
        return None


def open_maps(maps: object, *, key: str | None = None, names: Sequence[str] | None = None) -> Maps:
    """Maps of any kind: a path, a tensor or array (N,H,W), a mapping from names, or an iterable; see the classes."""
    if isinstance(maps, (str, os.PathLike)):
        return _in_files(Path(maps), key)
    if hasattr(maps, "shape"):
        return StackMaps(maps, names)
    if isinstance(maps, Mapping):
        return MappingMaps(maps)
    if isinstance(maps, Iterable):
        if names is not None:
            maps = zip(names, maps)
        return StreamMaps(maps)
    raise DataError(f"maps: expected a path, an array (N,H,W), a mapping or an iterable, found {type(maps).__name__}")


def _in_files(path: Path, key: str | None) -> Maps:
    if path.suffix.lower() == ".npy" and path.is_file():
        return StackMaps(npy_stack(path), None, str(path))
    if path.is_dir() and (stems := _records(path)):
        return RecordMaps(path, stems)
    return FileMaps(open_members(path, SUFFIXES), key)


def _records(folder: Path) -> list[str]:
    """Records in a folder, as paths from it without their suffix."""
    tensors = (file for file in sorted(folder.rglob("*.safetensors")) if file.with_suffix(".json").is_file())
    return [file.relative_to(folder).with_suffix("").as_posix() for file in tensors]


def _in_order(names: Mapping[str, Any], first: Iterable[str]) -> list[str]:
    """All names, those called ``first`` before the others."""
    leading = dict.fromkeys(name for name in first if name in names)
    return [*leading, *(name for name in names if name not in leading)]


def npy_stack(path: Path) -> object:
    """The array (N,H,W) of a .npy file, left on the disk until it is read."""
    try:
        with open_regular(path) as file:
            npy_header(file, str(path), most=1 << 50)
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, TypeError) as error:
        raise DataError(f"{path}: damaged or no .npy file ({error}); write it again") from error


def one_map(name: str, found: Any) -> Chunk:
    """A chunk of one map."""
    try:
        return Chunk([name], as_tensor(found, name)[None])
    except SaccadeError as error:
        return Chunk([name], error)


def as_tensor(found: object, name: str) -> Tensor:
    """One map (h,w) as floats, on the device where it is; further axes of length 1 go."""
    if not isinstance(found, Tensor):
        return torch.from_numpy(as_map(np.asarray(found), name))
    values = found.detach()
    while values.dim() > 2 and 1 in (values.shape[0], values.shape[-1]):
        values = values[0] if values.shape[0] == 1 else values[..., 0]
    if values.dim() != 2 or values.numel() == 0 or values.is_complex():
        what = f"{tuple(found.shape)} of {found.dtype}"
        raise DataError(f"{name}: a map is (H,W) of real numbers, found {what}; sum over channels first, and say how")
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def stack_tensor(found: Any) -> Tensor:
    """Maps (N,h,w) as floats, on the device where they are."""
    if isinstance(found, Tensor) and not found.is_complex():
        return found.detach() if found.dtype in (torch.float32, torch.float64) else found.detach().float()
    if isinstance(found, Tensor) or found.dtype.kind not in "biuf":
        raise DataError(f"maps: expected real numbers, found {found.dtype}")
    return torch.from_numpy(np.array(found, dtype=np.float32))  # a copy: a file stays on the disk


def numbered(count: int) -> list[str]:
    """Names of maps without names."""
    return [numbered_name(number) for number in range(count)]


def numbered_name(number: int) -> str:
    """The name of the map of that number."""
    return f"{number:06d}"
