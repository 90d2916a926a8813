"""Where maps and their truth come from: files, records, tables, arrays in memory, or a stream.

Both are read one by one, by name. A truth is a mask, or what a table marks: boxes and points of a picture, or of a
question about it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.data.maps import (
    SEPARATOR,
    SUFFIXES,
    MarkTable,
    PictureMarks,
    TruthMark,
    as_map,
    as_mask,
    by_short_name,
    marked_pixels,
    npy_header,
    open_members,
    read_marks,
    truth_for,
)
from saccade.errors import ConfigError, DataError, SaccadeError, ShapeError
from saccade.files import open_regular, read_json
from saccade.geometry import Size

if TYPE_CHECKING:
    from saccade.scoring.causal import TwinPool
    from saccade.scoring.results import Policies

Named = tuple[str, Tensor | SaccadeError]  # The name of a map, and the map (h,w) or what is wrong with it
Convert = Callable[[Any, str], Tensor]
TABLES = (".csv", ".json", ".jsonl")


@dataclass
class Maps:
    """Maps or masks by name, read one by one."""

    where: str  # what messages call them
    paths: Collection[str]  # what they are called before they are named; none of a stream
    read_path: Callable[[str], Tensor] = lambda path: torch.zeros(0)  # path → map (h,w), or mask (H,W) bool
    ignored: int = 0  # files that hold no map by their suffix
    is_fixed: bool = False  # whether they have their names already
    is_stacked: bool = False  # whether they are one array (N,H,W)
    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, short: bool) -> None:
        """Call maps by the last part of their path, or by all of it."""
        self.names = by_short_name(self.paths, short)

    def each(self, first: Iterable[str] = ()) -> Iterator[Named]:
        """All maps, those called ``first`` before the others."""
        for name in dict.fromkeys((*(name for name in first if name in self.names), *self.names)):
            yield name, readable(self.read, name)

    def read(self, name: str) -> Any:
        """One map (h,w), now or again; None where it is gone."""
        return self.read_path(self.names[name]) if name in self.names else None


class StreamMaps(Maps):
    """Maps that come once, one after the other: pairs of a name and a map (h,w), or maps alone, which are numbered."""

    def __init__(self, maps: Iterable[Any]) -> None:
        super().__init__("maps in memory", (), is_fixed=True)
        self._maps = maps

    def each(self, first: Iterable[str] = ()) -> Iterator[Named]:
        """All maps in the order of the stream."""
        for number, item in enumerate(self._maps):
            is_pair = isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)
            name, values = item if is_pair else (f"{number:06d}", item)
            yield name, readable(map_of, values, name)


def readable(read: Callable[..., Tensor], *arguments: Any) -> Tensor | SaccadeError:
    """What ``read`` returns, or the error that says why it cannot be read."""
    try:
        return read(*arguments)
    except SaccadeError as error:
        return error


def open_maps(maps: Any, *, key: str | None = None, names: Sequence[str] | None = None) -> Maps:
    """Maps of any kind: a path, a tensor or array (N,H,W), a mapping from names, or an iterable."""
    if isinstance(maps, (str, os.PathLike)):
        path = Path(maps)
        if path.is_dir() and (records := _records(path)):
            return Maps(str(path), records, lambda name: _total_map(records[name], name))
        return _in_files(path, map_of, key, grey=True)
    if hasattr(maps, "shape") or isinstance(maps, Mapping):
        return _in_memory(maps, "maps", map_of, names)
    if isinstance(maps, Iterable):
        return StreamMaps(maps if names is None else zip(names, maps))
    raise DataError(f"maps: expected a path, an array (N,H,W), a mapping or an iterable, found {type(maps).__name__}")


def open_masks(masks: Any, *, key: str | None = None, names: Sequence[str] | None = None) -> Maps:
    """Masks of any kind: a path, a tensor or array (N,H,W), a mapping from names, or a list."""
    if isinstance(masks, (str, os.PathLike)):
        return _in_files(Path(masks), _mask_of, key)
    return _in_memory(masks, "masks", _mask_of, names)


def _in_files(path: Path, convert: Convert, key: str | None, *, grey: bool = False) -> Maps:
    if path.suffix.lower() == ".npy" and path.is_file():
        return _in_memory(_npy_stack(path), str(path), convert, None, where=str(path))
    members = open_members(path, SUFFIXES)
    read = members.read
    names, ignored = members.names, members.ignored
    return Maps(members.where, names, lambda name: convert(read(name, key, grey), name), ignored=ignored)


def _in_memory(values: Any, what: str, convert: Convert, names: Sequence[str] | None, where: str = "") -> Maps:
    """Values by name, or in a stack (N,H,W) or list, called by their numbers or by ``names``."""
    is_stacked = hasattr(values, "shape")
    if is_stacked:
        values = values[:, 0] if values.ndim == 4 and values.shape[1] == 1 else values
        if values.ndim != 3 or values.shape[1] * values.shape[2] == 0:
            raise ShapeError(what, "(N,H,W) with at least one pixel", values.shape)
    by_name, where = _by_name(values, what, names), where or f"{what} in memory"
    return Maps(where, by_name, lambda name: convert(by_name[name], name), is_fixed=True, is_stacked=is_stacked)


def _by_name(values: Any, what: str, names: Sequence[str] | None) -> dict[str, Any]:
    if isinstance(values, Mapping):
        return {str(name): value for name, value in values.items()}
    if not hasattr(values, "__len__"):
        raise DataError(f"truth: expected a path, masks (N,H,W) or a mapping, found {type(values).__name__}")
    by_name = dict(zip([f"{number:06d}" for number in range(len(values))] if names is None else names, values))
    if names is not None and not len(names) == len(by_name) == len(values):
        raise DataError(f"names: {len(values)} {what} and {len({*names})} different names; each needs one of its own")
    return by_name


def map_of(values: Any, name: str) -> Tensor:
    """One map (h,w) as floats, on the device where it is; further axes of length 1 go."""
    if not isinstance(values, Tensor):
        return torch.from_numpy(as_map(np.asarray(values), name))
    plane = values.detach()
    while plane.dim() > 2 and 1 in (plane.shape[0], plane.shape[-1]):
        plane = plane[0] if plane.shape[0] == 1 else plane[..., 0]
    if plane.dim() != 2 or plane.numel() == 0 or plane.is_complex():
        shape = f"{tuple(values.shape)} of {values.dtype}"
        raise DataError(f"{name}: a map is (H,W) of real numbers, found {shape}; sum over channels first, and say how")
    return plane if plane.dtype in (torch.float32, torch.float64) else plane.float()


def _mask_of(values: Any, name: str) -> Tensor:
    return torch.from_numpy(as_mask(_array(values), name))


def _array(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _npy_stack(path: Path) -> Any:
    """The array (N,H,W) of a .npy file, left on the disk until it is read."""
    try:
        with open_regular(path) as file:
            npy_header(file, str(path), most=1 << 50)
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, TypeError) as error:
        raise DataError(f"{path}: damaged or no .npy file ({error}); write it again") from error


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


class TruthMask(NamedTuple):
    """Where a map should lie."""

    mask: Tensor  # (H,W) bool; empty where truths are points
    objects: Tensor | None  # (H,W) bool: the pixels of all objects of the picture


class TruthPoints(NamedTuple):
    """Points of one picture."""

    at: Tensor  # (K,2) as (x, y) in pixels of the picture
    size: Size | None  # (H, W) of the picture; None: that of the map


class Truths(ABC):
    """Truths by name: masks, marks or a causal set."""

    where: str
    kind: Literal["masks", "boxes", "points"] = "masks"
    paths: Collection[str]
    """What they are called before they are named, see :mod:`saccade.data.maps`."""
    names: Mapping[str, Any]  # All that a map can be compared with
    unusable: Sequence[str] = ()  # Rows that could not be read
    is_stacked: bool = False
    is_fixed: bool = False

    @abstractmethod
    def name(self, short: bool, separator: str) -> None:
        """Call them by the last part of their path, or by all of it."""

    @property
    def wanted(self) -> Iterable[str]:
        """All maps that are read, in the order in which they are best read."""
        return self.names

    def truth_of(self, name: str, separator: str) -> str | None:
        """The truth that the map ``name`` is compared with; None: there is none."""
        return truth_for(name, self.names, separator)

    def expected(self, matched: set[str]) -> list[str]:
        """The truths that should have a map; ``matched``: those that have one."""
        return list(self.names)

    @abstractmethod
    def evidence(self, name: str, size: Size) -> TruthMask:
        """The mask of a truth; ``size`` is that of the map, for pictures without one."""

    def points(self, name: str) -> TruthPoints:
        """The points of a truth; of masks none."""
        return TruthPoints(torch.zeros(0, 2), None)

    def pool(self, policies: Policies) -> TwinPool | None:
        """Takes all maps scene by scene, those of twins too, where the truth is a causal set; else None."""
        return None


class MaskTruths(Truths):
    """Masks; objects in others, by the same name or by that of the picture."""

    def __init__(self, masks: Maps, objects: Maps | None) -> None:
        self.where, self.paths, self.names = masks.where, masks.paths, {}
        self.is_fixed, self.is_stacked = masks.is_fixed, masks.is_stacked
        self._masks, self._objects, self._separator = masks, objects, ""

    def name(self, short: bool, separator: str) -> None:
        """Name masks and objects."""
        self._masks.name(short)
        self.names, self._separator = self._masks.names, separator
        if self._objects is not None:
            self._objects.name(short)

    def evidence(self, name: str, size: Size) -> TruthMask:
        """The mask, and that of the objects."""
        mask = self._masks.read(name)
        if self._objects is None:
            return TruthMask(mask, None)
        matching = truth_for(name, self._objects.names, self._separator)
        if matching is None:
            raise DataError(f"objects: none of '{name}' in {self._objects.where}; give a mask of them for each picture")
        objects = self._objects.read(matching)
        if objects.shape != mask.shape:
            raise ShapeError(f"objects of '{name}'", f"{tuple(mask.shape)} as its mask", objects.shape)
        return TruthMask(mask, objects)


class MarkTruths(Truths):
    """Boxes, segmentations and points of a table, by picture, and by picture and label."""

    def __init__(self, table: MarkTable) -> None:
        self.where, self.unusable, self.kind = table.where, table.unusable, table.kind
        self.paths, self._table = list(table.pictures), table
        self.names: dict[str, tuple[PictureMarks, str | None]] = {}
        self._labels = {mark.label for marks in table.pictures.values() for mark in marks.marks} - {None}

    def truth_of(self, name: str, separator: str) -> str | None:
        """None too for a map of a label that is marked in other pictures but not in this one."""
        truth = truth_for(name, self.names, separator)
        of_picture = truth is not None and truth != name
        return None if of_picture and name[len(str(truth)) + len(separator) :] in self._labels else truth

    def name(self, short: bool, separator: str) -> None:
        """Name pictures, and labels behind their picture."""
        for path, marks in self._table.pictures.items():
            name = PurePosixPath(path).name if short else path
            labels = dict.fromkeys(mark.label for mark in marks.marks if mark.label is not None)
            self.names[name] = (marks, None)
            self.names |= {f"{name}{separator}{label}": (marks, label) for label in labels}

    def expected(self, matched: set[str]) -> list[str]:
        """Those of labels, if some of them have a map; else those of pictures."""
        of_labels = {name for name, (_, label) in self.names.items() if label is not None}
        return [name for name in self.names if (name in of_labels) == bool(matched & of_labels)]

    def evidence(self, name: str, size: Size) -> TruthMask:
        """The pixels of a label with those of the whole picture as objects; or the pixels of a picture."""
        marks, label = self.names[name]
        if self.kind == "points":
            return TruthMask(torch.zeros(marks.size or size, dtype=torch.bool), None)
        mask, every = (torch.from_numpy(marked_pixels(marks.of(of), marks.size or size)) for of in (label, None))
        return TruthMask(mask, None if label is None else every)

    def points(self, name: str) -> TruthPoints:
        """The points of a picture, or of one of its labels."""
        marks, label = self.names[name]
        at = torch.tensor([mark.place for mark in marks.of(label)], dtype=torch.float64).reshape(-1, 2)
        return TruthPoints(at, marks.size)


def has_photographs(truth: Any) -> bool:
    """Whether ``truth`` is the folder of a causal set of photographs."""
    if not isinstance(truth, (str, os.PathLike)) or not (facts := Path(truth).expanduser() / "causal.json").is_file():
        return False
    return read_json(facts).get("kind") == "photographs"


def open_truth(
    truth: Any,
    *,
    objects: Any = None,
    kind: str | None = None,
    names: Sequence[str] | None = None,
    key: str | None = None,
) -> Truths:
    """Truth of any kind: a path, masks (N,H,W), or a mapping from names; see :func:`saccade.score`."""
    if not isinstance(truth, (str, os.PathLike)):
        if kind in ("boxes", "points"):
            return MarkTruths(_as_table(truth, "boxes" if kind == "boxes" else "points", names))
        masks = open_masks(truth, names=names)
    else:
        path = Path(truth)
        if path.is_dir() and (path / "scenes.jsonl").is_file():
            path = path / "scenes.jsonl"  # pictures that `saccade data make` wrote; their truth lies beside them
        is_causal = (path / "causal.json").is_file()
        marks = MarkTruths(read_marks(path)) if path.suffix.lower() in TABLES and path.is_file() else None
        if objects is not None and (is_causal or marks is not None):
            raise ConfigError(f"objects: {path} says itself what else is in a picture; leave it out")
        actual = "masks" if marks is None else marks.kind
        if kind not in (None, actual):
            raise DataError(f"{truth}: expected {kind}, found {actual}; boxes and points come as a table")
        if marks is not None:
            return marks
        if is_causal:
            from saccade.scoring.causal import CausalTruth

            return CausalTruth(path)
        masks = open_masks(path, key=key)
    return MaskTruths(masks, None if objects is None else open_masks(objects, names=names))


def _as_table(truth: Any, kind: Literal["boxes", "points"], names: Sequence[str] | None) -> MarkTable:
    table, width = MarkTable(f"{kind} in memory", kind), 4 if kind == "boxes" else 2
    for name, places in _by_name(truth, kind, names).items():
        values = _array(places)
        if values.size % width or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise DataError(f"{name}: expected {kind} (n,{width}), finite numbers")
        rows = values.reshape(-1, width).tolist()
        table.pictures[name] = PictureMarks(None, [TruthMark(tuple(map(float, row))) for row in rows])
    return table
