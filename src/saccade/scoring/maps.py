"""Where maps come from: files, records, arrays in memory, or a stream of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade.data.maps.arrays import SEPARATOR, SUFFIXES, as_map, by_short_name, npy_header, open_members
from saccade.errors import DataError, SaccadeError, ShapeError
from saccade.untrusted import open_regular

Named = tuple[str, Tensor | SaccadeError]
"""The name of a map, and the map (h,w) or what is wrong with it."""


class Maps:
    """Maps by name, read one by one.

    Args:
        where: what messages call them.
        paths: what they are called before they are named, see :mod:`saccade.data.maps.arrays`.
        read: path → map (h,w).
        ignored: files that hold no map by their suffix.
        is_fixed: whether they have their names already.
        is_stacked: whether they are one array (N,H,W).
    """

    def __init__(
        self,
        where: str,
        paths: Iterable[str],
        read: Callable[[str], Tensor],
        *,
        ignored: int = 0,
        is_fixed: bool = False,
        is_stacked: bool = False,
    ) -> None:
        self.where, self.ignored, self.is_fixed, self.is_stacked = where, ignored, is_fixed, is_stacked
        self._paths, self._read = list(paths), read
        self._names: dict[str, str] = {}

    def paths(self) -> list[str] | None:
        """What the maps are called before they are named; None: not known before they come."""
        return self._paths

    def name(self, short: bool) -> None:
        """Call maps by the last part of their path, or by all of it."""
        self._names = by_short_name(self._paths, short)

    def each(self, first: Iterable[str] = ()) -> Iterator[Named]:
        """All maps, those called ``first`` before the others."""
        leading = dict.fromkeys(name for name in first if name in self._names)
        for name in (*leading, *(name for name in self._names if name not in leading)):
            yield name, readable(self.read, name)

    def read(self, name: str) -> Any:
        """One map (h,w), now or again; None where it is gone."""
        return self._read(self._names[name]) if name in self._names else None


class StreamMaps(Maps):
    """Maps that come once, one after the other: pairs of a name and a map (h,w), or maps alone, which are numbered."""

    def __init__(self, maps: Iterable[Any]) -> None:
        super().__init__("maps in memory", (), lambda path: torch.zeros(0), is_fixed=True)
        self._maps = maps

    def paths(self) -> list[str] | None:
        """See :class:`Maps`."""
        return None

    def each(self, first: Iterable[str] = ()) -> Iterator[Named]:
        """See :class:`Maps`; they come as they come."""
        for number, found in enumerate(self._maps):
            is_pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], str)
            name, values = found if is_pair else (f"{number:06d}", found)
            yield name, readable(as_tensor, values, name)


def readable(read: Callable[..., Tensor], *given: Any) -> Tensor | SaccadeError:
    """What ``read`` finds, or the error that says why it cannot be read."""
    try:
        return read(*given)
    except SaccadeError as error:
        return error


def open_maps(maps: object, *, key: str | None = None, names: Sequence[str] | None = None) -> Maps:
    """Maps of any kind: a path, a tensor or array (N,H,W), a mapping from names, or an iterable; see the classes."""
    if isinstance(maps, (str, os.PathLike)):
        return _in_files(Path(maps), key)
    if hasattr(maps, "shape"):
        return _stack(maps, names, "maps in memory")
    if isinstance(maps, Mapping):
        held = {str(name): found for name, found in maps.items()}
        return Maps("maps in memory", held, lambda name: as_tensor(held[name], name), is_fixed=True)
    if isinstance(maps, Iterable):
        return StreamMaps(maps if names is None else zip(names, maps))
    raise DataError(f"maps: expected a path, an array (N,H,W), a mapping or an iterable, found {type(maps).__name__}")


def _in_files(path: Path, key: str | None) -> Maps:
    if path.suffix.lower() == ".npy" and path.is_file():
        return _stack(npy_stack(path), None, str(path))
    if path.is_dir() and (records := _records(path)):
        return Maps(str(path), records, lambda name: _total_map(records[name], name))
    members = open_members(path, SUFFIXES)
    return Maps(
        members.where,
        members.names,
        lambda name: torch.from_numpy(as_map(members.read(name, key, grey=True), name)),
        ignored=members.ignored,
    )


def _stack(maps: Any, names: Sequence[str] | None, where: str) -> Maps:
    """Maps (N,h,w) in memory or in one .npy file, called by their numbers, or by names."""
    maps = as_stack(maps, "maps")
    number = numbers_by_name("maps", len(maps), names)
    if maps.is_complex() if isinstance(maps, Tensor) else maps.dtype.kind not in "biuf":
        raise DataError(f"maps: expected real numbers, found {maps.dtype}")

    def read(name: str) -> Tensor:
        found = maps[number[name]]
        if not isinstance(found, Tensor):
            return torch.from_numpy(np.array(found, dtype=np.float32))  # a copy: a file stays on the disk
        return found.detach() if found.dtype in (torch.float32, torch.float64) else found.detach().float()

    return Maps(where, number, read, is_fixed=True, is_stacked=True)


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


def npy_stack(path: Path) -> object:
    """The array (N,H,W) of a .npy file, left on the disk until it is read."""
    try:
        with open_regular(path) as file:
            npy_header(file, str(path), most=1 << 50)
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, TypeError) as error:
        raise DataError(f"{path}: damaged or no .npy file ({error}); write it again") from error


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


def as_stack(found: Any, name: str) -> Any:
    """Maps or masks (N,H,W); those of (N,1,H,W) lose an axis."""
    if found.ndim == 4 and found.shape[1] == 1:
        found = found[:, 0]  # (N,H,W)
    if found.ndim != 3 or found.shape[1] * found.shape[2] == 0:
        raise ShapeError(name, "(N,H,W) with at least one pixel", found.shape)
    return found


def numbers_by_name(what: str, count: int, names: Sequence[str] | None) -> dict[str, int]:
    """The place of each map or mask in its stack; without names they are called by it."""
    numbers = {name: at for at, name in enumerate(numbered(count) if names is None else names)}
    if len(numbers) != count:
        raise DataError(f"names: {count} {what} and {len(numbers)} different names; each needs one of its own")
    return numbers


def numbered(count: int) -> list[str]:
    """Names of maps without names."""
    return [f"{number:06d}" for number in range(count)]
