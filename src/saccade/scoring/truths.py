"""What maps are compared with: masks, boxes and points, by the name of the picture or of the question about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.data.maps.arrays import SUFFIXES, as_mask, by_short_name, open_members, truth_for
from saccade.data.maps.marks import MarkTable, PictureMarks, marked_pixels, read_marks
from saccade.errors import ConfigError, DataError, ShapeError
from saccade.geometry import Size
from saccade.scoring.maps import as_stack, npy_stack, numbered, numbers_by_name

if TYPE_CHECKING:
    from saccade.scoring.causal import TwinPool
    from saccade.scoring.results import Policies

TABLES = (".csv", ".json", ".jsonl")


class Evidence(NamedTuple):
    """Where a map should lie."""

    mask: Tensor
    """(H,W) bool."""
    objects: Tensor | None
    """(H,W) bool: the pixels of all objects of the picture."""


class Points(NamedTuple):
    """Points of one picture."""

    at: Tensor
    """(K,2) as (x, y) in pixels of the picture."""
    size: Size | None
    """(H, W) of the picture; None: that of the map."""


class Truths:
    """Truths by name: masks, marks or a causal set."""

    where: str
    kind: Literal["masks", "boxes", "points"] = "masks"
    unusable: Sequence[str] = ()
    """Rows that could not be read."""
    is_stacked: bool = False
    """Whether they are one array (N,H,W)."""
    is_fixed: bool = False
    """Whether they have their names already."""
    names: Mapping[str, Any]
    """All that a map can be compared with."""

    def paths(self) -> list[str]:
        """What they are called before they are named, see :mod:`saccade.data.maps.arrays`."""
        return list(self.names)

    def name(self, short: bool, separator: str) -> None:
        """Call them by the last part of their path, or by all of it."""
        raise NotImplementedError

    @property
    def wanted(self) -> Iterable[str]:
        """All maps that are read, in the order in which they are best read."""
        return self.names

    def expected(self, found: set[str]) -> list[str]:
        """The truths that should have a map, given those that have."""
        return list(self.names)

    def evidence(self, name: str, size: Size) -> Evidence:
        """The mask of a truth; ``size`` is that of the map, for pictures without one."""
        raise NotImplementedError

    def points(self, name: str) -> Points:
        """The points of a truth; of masks none."""
        return Points(torch.zeros(0, 2), None)

    def pool(self, policies: Policies) -> TwinPool | None:
        """Takes all maps scene by scene, those of twins too, where the truth is a causal set; else None."""
        return None


class MaskFiles(NamedTuple):
    """Masks of any sizes that are read one by one, from files or from memory."""

    where: str
    paths: list[str]
    read: Callable[[str], Tensor]
    """(H,W) bool."""
    is_fixed: bool
    shape: tuple[int, ...] | None = None
    """Of a stack (N,H,W)."""


class Masks(Truths):
    """Masks; objects in others, by the same name or by that of the picture."""

    def __init__(self, masks: MaskFiles, objects: MaskFiles | None) -> None:
        self.where, self.is_fixed, self.is_stacked = masks.where, masks.is_fixed, masks.shape is not None
        self.names = {}
        self._masks, self._objects = masks, objects
        if objects is not None and masks.shape is not None and objects.shape != masks.shape:
            raise ShapeError("objects", f"{masks.shape} as the masks", objects.shape or ())
        self._object_names: dict[str, str] = {}
        self._separator = ""

    def paths(self) -> list[str]:
        """See :class:`Truths`."""
        return self._masks.paths

    def name(self, short: bool, separator: str) -> None:
        """See :class:`Truths`."""
        self.names, self._separator = by_short_name(self._masks.paths, short), separator
        if self._objects is not None:
            self._object_names = by_short_name(self._objects.paths, short)

    def evidence(self, name: str, size: Size) -> Evidence:
        """See :class:`Truths`."""
        mask = self._masks.read(self.names[name])
        if self._objects is None:
            return Evidence(mask, None)
        found = truth_for(name, self._object_names, self._separator)
        if found is None:
            raise DataError(f"objects: none of '{name}' in {self._objects.where}; give a mask of them for each picture")
        objects = self._objects.read(self._object_names[found])
        if objects.shape != mask.shape:
            raise ShapeError(f"objects of '{name}'", f"{tuple(mask.shape)} as its mask", objects.shape)
        return Evidence(mask, objects)


class Marks(Truths):
    """Boxes, segmentations and points of a table, by picture, and by picture and label."""

    def __init__(self, table: MarkTable) -> None:
        self.where, self.unusable, self.kind = table.where, table.unusable, table.kind
        self._table = table
        self.names: dict[str, tuple[PictureMarks, str | None]] = {}

    def paths(self) -> list[str]:
        """See :class:`Truths`."""
        return list(self._table.pictures)

    def name(self, short: bool, separator: str) -> None:
        """See :class:`Truths`."""
        for path, marks in self._table.pictures.items():
            name = PurePosixPath(path).name if short else path
            self.names[name] = (marks, None)
            labels = dict.fromkeys(label for label in marks.labels if label is not None)
            self.names |= {f"{name}{separator}{label}": (marks, label) for label in labels}

    def expected(self, found: set[str]) -> list[str]:
        """See :class:`Truths`."""
        of_labels = {name for name, (_, label) in self.names.items() if label is not None}
        return [name for name in self.names if (name in of_labels) == bool(found & of_labels)]

    def evidence(self, name: str, size: Size) -> Evidence:
        """See :class:`Truths`."""
        marks, label = self.names[name]

        def pixels(of: str | None) -> Tensor:
            return torch.from_numpy(marked_pixels(marks, marks.of(of), marks.size or size))

        return Evidence(pixels(label), None if label is None else pixels(None))

    def points(self, name: str) -> Points:
        """See :class:`Truths`."""
        marks, label = self.names[name]
        at = torch.tensor([marks.places[number] for number in marks.of(label)], dtype=torch.float64).reshape(-1, 2)
        return Points(at, marks.size)


def open_truth(
    truth: Any,
    *,
    objects: Any = None,
    kind: str | None = None,
    names: Sequence[str] | None = None,
    key: str | None = None,
) -> Truths:
    """Truth of any kind.

    Args:
        truth: a path (folder, archive, causal set, .npy, .npz, .h5, .csv, .json, .jsonl), masks (N,H,W), or a mapping
            from names to masks, boxes (n,4) or points (n,2).
        objects: masks of all objects, of the same kind as ``truth``; for boxes and points labels say it.
        kind: what the values in memory are: masks, boxes or points; None: masks.
        names: of masks (N,H,W).
        key: of arrays in files that hold several.
    """
    if isinstance(truth, (str, os.PathLike)):
        opened = _in_files(Path(truth), objects, key)
        if kind not in (None, opened.kind):
            raise DataError(f"{truth}: expected {kind}, found {opened.kind}; boxes and points come as a table")
        return opened
    if kind in ("boxes", "points"):
        return Marks(_as_table(truth, "boxes" if kind == "boxes" else "points", names))
    read = _stack if hasattr(truth, "shape") else _in_memory
    return Masks(read(truth, names), None if objects is None else read(objects, names))


def _in_files(path: Path, objects: Any, key: str | None) -> Truths:
    if path.is_dir() and (path / "scenes.jsonl").is_file():
        path = path / "scenes.jsonl"  # pictures that `saccade data make` wrote; their truth lies beside them
    is_causal = (path / "causal.json").is_file()
    is_table = path.suffix.lower() in TABLES and path.is_file()
    if objects is not None and (is_causal or is_table):
        raise ConfigError(f"objects: {path} says itself what else is in a picture; leave it out")
    if is_causal:
        from saccade.scoring.causal import CausalTruth

        return CausalTruth(path)
    if is_table:
        return Marks(read_marks(path))
    if path.suffix.lower() == ".npy" and path.is_file():
        stacks = (None if each is None else _stack(npy_stack(Path(each)), None, str(each)) for each in (path, objects))
        return Masks(*stacks)  # type: ignore[arg-type]  # there is a path
    return Masks(_members(path, key), None if objects is None else _members(Path(objects)))


def _members(path: Path, key: str | None = None) -> MaskFiles:
    members = open_members(path, SUFFIXES)
    return MaskFiles(
        members.where, members.names, lambda name: torch.from_numpy(as_mask(members.read(name, key), name)), False
    )


def _in_memory(masks: Any, names: Sequence[str] | None) -> MaskFiles:
    held = _by_name(masks, names)
    return MaskFiles(
        "masks in memory", list(held), lambda name: torch.from_numpy(as_mask(_array(held[name]), name)), True
    )


def _stack(masks: Any, names: Sequence[str] | None, where: str = "masks in memory") -> MaskFiles:
    """Masks (N,H,W) in memory or in one .npy file, called by their numbers, or by names."""
    masks = as_stack(masks, "masks")
    number = numbers_by_name("masks", len(masks), names)

    def read(name: str) -> Tensor:
        found = masks[number[name]]
        if not isinstance(found, Tensor):
            return torch.from_numpy(as_mask(np.asarray(found), name))
        if not bool(found.isfinite().all()):
            raise DataError(f"{name}: a mask that holds NaN or infinity; make it of 0 and 1")
        return found != 0

    return MaskFiles(where, list(number), read, True, tuple(masks.shape))


def _by_name(values: Any, names: Sequence[str] | None) -> dict[str, Any]:
    if not hasattr(values, "__len__"):
        raise DataError(f"truth: expected a path, masks (N,H,W) or a mapping, found {type(values).__name__}")
    if isinstance(values, Mapping):
        return {str(name): value for name, value in values.items()}
    return dict(zip(numbered(len(values)) if names is None else map(str, names), values))


def _as_table(truth: Any, kind: Literal["boxes", "points"], names: Sequence[str] | None) -> MarkTable:
    """Boxes or points in memory as a table."""
    table, wide = MarkTable(f"{kind} in memory", kind), 4 if kind == "boxes" else 2
    for name, places in _by_name(truth, names).items():
        values = _array(places).reshape(-1, wide) if np.size(_array(places)) % wide == 0 else None
        if values is None or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise DataError(f"{name}: expected {kind} (n,{wide}), finite numbers")
        held = table.pictures.setdefault(name, PictureMarks())
        held.places += [tuple(float(each) for each in row) for row in values]
        held.labels, held.segments = [None] * len(held.places), [None] * len(held.places)
    return table


def _array(values: object) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
