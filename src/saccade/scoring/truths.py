"""What maps are compared with: masks, boxes and points, by the name of the picture or of the question about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from saccade.data.maps.arrays import SUFFIXES, as_mask
from saccade.data.maps.marks import MarkTable, PictureMarks, marked_pixels, read_marks
from saccade.data.maps.members import by_short_name, open_members, truth_for
from saccade.errors import ConfigError, DataError, ShapeError
from saccade.geometry import Size
from saccade.scoring.maps import as_stack, npy_stack, numbered, numbers_by_name
from saccade.scoring.policies import Policies

if TYPE_CHECKING:
    from saccade.scoring.twins import TwinPool

Kind = Literal["masks", "boxes", "points"]
TABLES = (".csv", ".json", ".jsonl")


class Evidence(NamedTuple):
    """Where maps of one batch should lie."""

    masks: Tensor
    """(B,H,W) bool."""
    objects: Tensor | None
    """(B,H,W) bool: the pixels of all objects of each picture."""


class Points(NamedTuple):
    """Points of one picture."""

    at: Tensor
    """(K,2) as (x, y) in pixels of the picture."""
    size: Size | None
    """(H, W) of the picture; None: that of the map."""


class Truths(Protocol):
    """Truths by name."""

    where: str
    kind: Kind = "masks"
    unusable: Sequence[str] = ()
    """Rows that could not be read."""
    is_stacked: bool = False
    """Whether all have one size, so that many are read together."""
    is_fixed: bool = False
    """Whether they have their names already."""
    names: Mapping[str, Any]
    """All that a map can be compared with."""

    def paths(self) -> list[str]:
        """What they are called before they are named, see :mod:`saccade.data.maps.members`."""
        return list(self.names)

    def name(self, short: bool, separator: str) -> None:
        """Call them by the last part of their path, or by all of it."""
        return

    @property
    def wanted(self) -> Iterable[str]:
        """All maps that are read, in the order in which they are best read."""
        return self.names

    def expected(self, found: set[str]) -> list[str]:
        """The truths that should have a map, given those that have."""
        return list(self.names)

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """Masks of truths that have one size; ``size`` is that of the maps, for pictures without one."""
        ...

    def points(self, name: str) -> Points:
        """The points of a truth; of masks none."""
        return Points(torch.zeros(0, 2), None)

    def pool(self, policies: Policies) -> TwinPool | None:
        """Takes all maps scene by scene, those of twins too, where the truth is a causal set; else None."""
        return None


class ReadMasks(NamedTuple):
    """Masks of any sizes that are read one by one."""

    where: str
    paths: list[str]
    read: Callable[[str], Tensor]
    """(H,W) bool."""
    is_fixed: bool


class SingleMasks(Truths):
    """Masks in files or in memory; objects in others, by the same name or by that of the picture."""

    def __init__(self, masks: ReadMasks, objects: ReadMasks | None) -> None:
        self.where, self.is_fixed, self.names = masks.where, masks.is_fixed, {}
        self._masks, self._objects = masks, objects
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

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """See :class:`Truths`."""
        (name,) = names
        mask = self._masks.read(self.names[name])
        if self._objects is None:
            return Evidence(mask[None], None)
        found = truth_for(name, self._object_names, self._separator)
        if found is None:
            raise DataError(f"objects: none of '{name}' in {self._objects.where}; give a mask of them for each picture")
        objects = self._objects.read(self._object_names[found])
        if objects.shape != mask.shape:
            raise ShapeError(f"objects of '{name}'", f"{tuple(mask.shape)} as its mask", objects.shape)
        return Evidence(mask[None], objects[None])


class MaskStack(Truths):
    """Masks (N,H,W) in memory or in one .npy file, called by their numbers, or by names."""

    is_stacked = is_fixed = True

    def __init__(
        self, masks: object, objects: object, names: Sequence[str] | None, where: str = "masks in memory"
    ) -> None:
        self.where = where
        self._masks, self._objects = as_stack(masks, "truth"), None if objects is None else as_stack(objects, "objects")
        if self._objects is not None and self._objects.shape != self._masks.shape:
            raise ShapeError("objects", f"{tuple(self._masks.shape)} as the masks", self._objects.shape)
        self.names = numbers_by_name("masks", len(self._masks), names)

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """See :class:`Truths`."""
        rows = [self.names[name] for name in names]
        return Evidence(_rows(self._masks, rows), None if self._objects is None else _rows(self._objects, rows))


class Marks(Truths):
    """Boxes, segmentations and points of a table, by picture, and by picture and label."""

    def __init__(self, table: MarkTable) -> None:
        self.where, self.unusable, self.kind = table.where, table.unusable, table.kind
        self._table = table
        self.names: dict[str, tuple[PictureMarks, str | None]] = {}
        self._separator = ""

    def paths(self) -> list[str]:
        """See :class:`Truths`."""
        return list(self._table.pictures)

    def name(self, short: bool, separator: str) -> None:
        """See :class:`Truths`."""
        self._separator = separator
        for path, marks in self._table.pictures.items():
            name = PurePosixPath(path).name if short else path
            self.names[name] = (marks, None)
            labels = dict.fromkeys(label for label in marks.labels if label is not None)
            self.names |= {f"{name}{separator}{label}": (marks, label) for label in labels}

    def expected(self, found: set[str]) -> list[str]:
        """See :class:`Truths`."""
        of_labels = {name for name, (_, label) in self.names.items() if label is not None}
        return [name for name in self.names if (name in of_labels) == bool(found & of_labels)]

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """See :class:`Truths`."""
        (name,) = names
        marks, label = self.names[name]
        size = marks.size or size
        mask = torch.from_numpy(marked_pixels(marks, marks.of(label), size))[None]
        if label is None:
            return Evidence(mask, None)
        return Evidence(mask, torch.from_numpy(marked_pixels(marks, marks.of(None), size))[None])

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
    if hasattr(truth, "shape"):
        return MaskStack(truth, objects, names)
    if isinstance(truth, (Mapping, Sequence)):
        return SingleMasks(_in_memory(truth, names), None if objects is None else _in_memory(objects, names))
    raise DataError(f"truth: expected a path, masks (N,H,W) or a mapping, found {type(truth).__name__}")


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
        return MaskStack(npy_stack(path), None if objects is None else npy_stack(Path(objects)), None, str(path))
    return SingleMasks(_masks_in(path, key), None if objects is None else _masks_in(Path(objects)))


def _masks_in(path: Path, key: str | None = None) -> ReadMasks:
    members = open_members(path, SUFFIXES)
    return ReadMasks(
        members.where, members.names, lambda name: torch.from_numpy(as_mask(members.read(name, key), name)), False
    )


def _in_memory(masks: Any, names: Sequence[str] | None) -> ReadMasks:
    held = _by_name(masks, names)
    return ReadMasks(
        "masks in memory", list(held), lambda name: torch.from_numpy(as_mask(_array(held[name]), name)), True
    )


def _by_name(values: Any, names: Sequence[str] | None) -> dict[str, Any]:
    pairs = (
        values.items()
        if isinstance(values, Mapping)
        else zip(numbered(len(values)) if names is None else names, values)
    )
    return {str(name): value for name, value in pairs}


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


def _rows(masks: Any, rows: list[int]) -> Tensor:
    """Masks (B,H,W) bool of a stack."""
    if isinstance(masks, Tensor):
        found = masks[torch.tensor(rows, device=masks.device)]
        is_finite = not found.is_floating_point() or bool(found.isfinite().all())
    else:
        values = np.asarray(masks[rows])
        is_finite = values.dtype.kind != "f" or bool(np.isfinite(values).all())
        found = torch.from_numpy(values != 0)
    if not is_finite:
        raise DataError("truth: a mask that holds NaN or infinity; make it of 0 and 1")
    return found if found.dtype == torch.bool else found != 0
