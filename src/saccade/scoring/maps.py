"""Where maps come from: files, records, arrays in memory, or a stream of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from saccade.data.maps.arrays import SUFFIXES, as_map, npy_header
from saccade.data.maps.members import SEPARATOR, by_short_name, open_members
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
    ignored: int = 0
    """Files that hold no map by their suffix."""
    is_stacked: bool = False
    """Whether all have one size, so that many are read together."""
    is_fixed: bool = True
    """Whether they have their names already."""

    def paths(self) -> list[str] | None:
        """What the maps are called before they are named, see :mod:`saccade.data.maps.members`; None: not known yet."""
        return None

    def name(self, short: bool) -> None:
        """Call maps by the last part of their path, or by all of it."""
        return

    def each(self, at_once: int, first: Iterable[str] = ()) -> Iterator[Chunk]:
        """All maps, at most ``at_once`` together; read one by one, those called ``first`` before the others."""
        ...

    def read(self, name: str) -> Tensor | None:
        """One map (h,w) again; None where it is gone."""
        return None


class SingleMaps(Maps):
    """Maps that are read one by one: files, records, or arrays of any size in memory."""

    def __init__(
        self, where: str, paths: Iterable[str], read: Callable[[str], Tensor], *, ignored: int = 0, is_fixed: bool
    ) -> None:
        self.where, self.ignored, self.is_fixed = where, ignored, is_fixed
        self._paths, self._read = list(paths), read
        self._names: dict[str, str] = {}

    def paths(self) -> list[str] | None:
        """See :class:`Maps`."""
        return self._paths

    def name(self, short: bool) -> None:
        """See :class:`Maps`."""
        self._names = by_short_name(self._paths, short)

    def each(self, at_once: int, first: Iterable[str] = ()) -> Iterator[Chunk]:
        """See :class:`Maps`."""
        for name in _in_order(self._names, first):
            yield one_map(name, lambda name=name: self._read(self._names[name]))  # type: ignore[misc]  # bound now

    def read(self, name: str) -> Tensor | None:
        """See :class:`Maps`."""
        return self._read(self._names[name]) if name in self._names else None


class StackMaps(Maps):
    """Maps (N,h,w) in memory or in one .npy file, called by their numbers, or by names."""

    is_stacked = True

    def __init__(self, maps: Any, names: Sequence[str] | None, where: str = "maps in memory") -> None:
        self._maps, self.where = as_stack(maps, "maps"), where
        self._numbers = numbers_by_name("maps", len(self._maps), names)

    def paths(self) -> list[str] | None:
        """See :class:`Maps`."""
        return list(self._numbers)

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
        return self._at(self._numbers[name])[0] if name in self._numbers else None

    def _at(self, number: int) -> Tensor:
        return stack_tensor(self._maps[number : number + 1])  # (1,h,w)


class StreamMaps(Maps):
    """Maps that come once, one after the other: pairs of a name and a map (h,w), or maps alone, which are numbered."""

    def __init__(self, maps: Iterable[Any]) -> None:
        self._maps, self.where = maps, "maps in memory"

    def each(self, at_once: int, first: Iterable[str] = ()) -> Iterator[Chunk]:
        """See :class:`Maps`; they come as they come."""
        for number, found in enumerate(self._maps):
            is_pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], str)
            name, values = found if is_pair else (numbered_name(number), found)
            yield one_map(name, partial(as_tensor, values, name))


def open_maps(maps: object, *, key: str | None = None, names: Sequence[str] | None = None) -> Maps:
    """Maps of any kind: a path, a tensor or array (N,H,W), a mapping from names, or an iterable; see the classes."""
    if isinstance(maps, (str, os.PathLike)):
        return _in_files(Path(maps), key)
    if hasattr(maps, "shape"):
        return StackMaps(maps, names)
    if isinstance(maps, Mapping):
        held = {str(name): found for name, found in maps.items()}
        return SingleMaps("maps in memory", held, lambda name: as_tensor(held[name], name), is_fixed=True)
    if isinstance(maps, Iterable):
        return StreamMaps(maps if names is None else zip(names, maps))
    raise DataError(f"maps: expected a path, an array (N,H,W), a mapping or an iterable, found {type(maps).__name__}")


def _in_files(path: Path, key: str | None) -> Maps:
    if path.suffix.lower() == ".npy" and path.is_file():
        return StackMaps(npy_stack(path), None, str(path))
    if path.is_dir() and (records := _records(path)):
        return SingleMaps(str(path), records, lambda name: _total_map(records[name], name), is_fixed=False)
    members = open_members(path, SUFFIXES)
    return SingleMaps(
        members.where,
        members.names,
        lambda name: torch.from_numpy(as_map(members.read(name, key, grey=True), name)),
        ignored=members.ignored,
        is_fixed=False,
    )


def _records(folder: Path) -> dict[str, Path]:
    """Records that ``saccade look --out`` wrote; ``PICTURE-ask-QUESTION`` is called ``PICTURE__QUESTION``."""
    files = (file.with_suffix(".json") for file in sorted(folder.rglob("*.safetensors")))
    return {
        file.relative_to(folder).with_suffix("").as_posix().replace("-ask-", SEPARATOR): file
        for file in files
        if file.is_file()
    }


def _total_map(file: Path, name: str) -> Tensor:
    """The total map (H,W) of a record; the drawings beside it are no maps."""
    from saccade.record import read_record

    trace = read_record(file).trace
    if not trace.looks_of_total:
        raise DataError(f"{name}: its looks lie on no picture")
    return trace.image_map("total")[0].float()


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


def one_map(name: str, read: Callable[[], Tensor]) -> Chunk:
    """A chunk of one map, or of what is wrong with it."""
    try:
        return Chunk([name], read()[None])
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


def as_stack(found: Any, name: str) -> Any:
    """Maps or masks (N,H,W); those of (N,1,H,W) lose an axis."""
    if found.ndim == 4 and found.shape[1] == 1:
        found = found[:, 0]  # (N,H,W)
    if found.ndim != 3 or found.shape[1] * found.shape[2] == 0:
        raise ShapeError(name, "(N,H,W) with at least one pixel", found.shape)
    return found


def numbers_by_name(what: str, count: int, names: Sequence[str] | None) -> dict[str, int]:
    """The place of each map or mask in its stack."""
    numbers = {name: at for at, name in enumerate(numbered(count) if names is None else names)}
    if len(numbers) != count:
        raise DataError(f"names: {count} {what} and {len(numbers)} different names; each needs one of its own")
    return numbers


def numbered(count: int) -> list[str]:
    """Names of maps without names."""
    return [numbered_name(number) for number in range(count)]


def numbered_name(number: int) -> str:
    """The name of the map of that number."""
    return f"{number:06d}"
