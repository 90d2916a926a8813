"""What maps are compared with: masks, boxes and points, by the name of the picture or of the question about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from saccade.data.maps.arrays import SUFFIXES, as_mask
from saccade.data.maps.marks import MarkTable, PictureMarks, marked_pixels, read_marks
from saccade.data.maps.members import Members, by_short_name, open_members, truth_for
from saccade.errors import ConfigError, DataError, ShapeError, nearest
from saccade.geometry import Size
from saccade.scoring.maps import npy_stack, numbered
from saccade.scoring.policies import Policies

if TYPE_CHECKING:
    from saccade.scoring.twins import TwinPool

Kind = Literal["masks", "boxes", "points"]
KINDS = ("masks", "boxes", "points")
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
    kind: Kind
    unusable: list[str]
    """Rows that could not be read."""
    is_stacked: bool
    """Whether all have one size, so that many are read together."""
    is_fixed: bool
    """Whether they have their names already."""

    def paths(self) -> list[str]:
        """What they are called before they are named, see :mod:`saccade.data.maps.members`."""

    def name(self, short: bool, separator: str) -> None:
        """Call them by the last part of their path, or by all of it."""

    @property
    def names(self) -> Mapping[str, object]:
        """All that a map can be compared with."""

    @property
    def wanted(self) -> Iterable[str]:
        """All maps that are read, in the order in which they are best read."""

    def expected(self, found: set[str]) -> list[str]:
        """The truths that should have a map, given those that have."""

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """Masks of truths that have one size; ``size`` is that of the maps, for pictures without one."""

    def points(self, name: str) -> Points:
        """The points of a truth."""

    def pool(self, policies: Policies) -> TwinPool | None:
        """Takes all maps scene by scene, those of twins too, where the truth is a causal set; else None."""


class Masks:
    """What all masks share."""

    kind: Kind = "masks"
    is_stacked = is_fixed = False

    def __init__(self) -> None:
        self.unusable: list[str] = []
        self._names: dict[str, Any] = {}

    @property
    def names(self) -> Mapping[str, object]:
        """See :class:`Truths`."""
        return self._names

    @property
    def wanted(self) -> Iterable[str]:
        """See :class:`Truths`."""
        return self._names

    def expected(self, found: set[str]) -> list[str]:
        """See :class:`Truths`."""
        return list(self._names)

    def points(self, name: str) -> Points:
        """See :class:`Truths`."""
        raise DataError(f"{name}: a mask, not points")

    def pool(self, policies: Policies) -> TwinPool | None:
        """See :class:`Truths`."""
        return None


class MaskFiles(Masks):
    """Masks in files; objects in others, by the same name or by that of the picture."""

    def __init__(self, members: Members, objects: Members | None, key: str | None) -> None:
        super().__init__()
        self.where, self._members, self._objects, self._key = members.where, members, objects, key
        self._object_names: dict[str, str] = {}
        self._separator = ""

    def paths(self) -> list[str]:
        """See :class:`Truths`."""
        return self._members.names

    def name(self, short: bool, separator: str) -> None:
        """See :class:`Truths`."""
        self._names, self._separator = by_short_name(self._members.names, short), separator
        if self._objects is not None:
            self._object_names = by_short_name(self._objects.names, short)

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """See :class:`Truths`."""
        (name,) = names
        path = self._names[name]
        mask = as_mask(self._members.read(path, self._key), path)
        if self._objects is None:
            return Evidence(torch.from_numpy(mask)[None], None)
        found = truth_for(name, self._object_names, self._separator)
        if found is None:
            raise DataError(f"{self._objects.where}: no objects of '{name}'; give a mask of them for every picture")
        objects = as_mask(self._objects.read(self._object_names[found]), self._object_names[found])
        if objects.shape != mask.shape:
            raise ShapeError(f"objects of '{name}'", f"{mask.shape} as its mask", objects.shape)
        return Evidence(torch.from_numpy(mask)[None], torch.from_numpy(objects)[None])


class MaskStack(Masks):
    """Masks (N,H,W) in memory or in one .npy file, called by their numbers, or by names."""

    is_stacked = is_fixed = True

    def __init__(
        self, masks: object, objects: object, names: Sequence[str] | None, where: str = "masks in memory"
    ) -> None:
        super().__init__()
        self.where = where
        self._masks, self._objects = _stack(masks, "truth"), None if objects is None else _stack(objects, "objects")
        if self._objects is not None and self._objects.shape != self._masks.shape:
            raise ShapeError("objects", f"{tuple(self._masks.shape)} as the masks", self._objects.shape)
        self._names = {name: at for at, name in enumerate(numbered(len(self._masks)) if names is None else names)}
        if len(self._names) != len(self._masks):
            raise DataError(f"truth: {len(self._masks)} masks and {len(self._names)} different names")

    def paths(self) -> list[str]:
        """See :class:`Truths`."""
        return list(self._names)

    def name(self, short: bool, separator: str) -> None:
        """They have their names."""

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """See :class:`Truths`."""
        rows = [self._names[name] for name in names]
        return Evidence(_rows(self._masks, rows), None if self._objects is None else _rows(self._objects, rows))


class MaskMapping(Masks):
    """Masks (H,W) in memory, by name, of any sizes."""

    is_fixed = True

    def __init__(self, masks: Mapping[str, object], objects: Mapping[str, object] | None) -> None:
        super().__init__()
        self.where, self._objects = "masks in memory", objects
        self._names = {str(name): mask for name, mask in masks.items()}
        self._separator = ""

    def paths(self) -> list[str]:
        """See :class:`Truths`."""
        return list(self._names)

    def name(self, short: bool, separator: str) -> None:
        """See :class:`Truths`."""
        self._separator = separator

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """See :class:`Truths`."""
        (name,) = names
        mask = torch.from_numpy(as_mask(_array(self._names[name]), name))
        if self._objects is None:
            return Evidence(mask[None], None)
        found = truth_for(name, self._objects, self._separator)
        if found is None:
            raise DataError(f"objects: none of '{name}'; give a mask of them for every picture")
        return Evidence(mask[None], torch.from_numpy(as_mask(_array(self._objects[found]), name))[None])


class Marks:
    """Boxes, segmentations and points of a table, by picture, and by picture and label."""

    is_stacked = is_fixed = False

    def __init__(self, table: MarkTable) -> None:
        self.where, self.unusable = table.where, table.unusable
        self.kind: Kind = table.kind
        self._table = table
        self._names: dict[str, tuple[PictureMarks, str | None]] = {}
        self._separator = ""

    def paths(self) -> list[str]:
        """See :class:`Truths`."""
        return list(self._table.pictures)

    def name(self, short: bool, separator: str) -> None:
        """See :class:`Truths`."""
        self._separator = separator
        for path, marks in self._table.pictures.items():
            name = PurePosixPath(path).name if short else path
            self._names[name] = (marks, None)
            labels = dict.fromkeys(label for label in marks.labels if label is not None)
            self._names |= {f"{name}{separator}{label}": (marks, label) for label in labels}

    @property
    def names(self) -> Mapping[str, object]:
        """See :class:`Truths`."""
        return self._names

    @property
    def wanted(self) -> Iterable[str]:
        """See :class:`Truths`."""
        return self._names

    def expected(self, found: set[str]) -> list[str]:
        """See :class:`Truths`."""
        of_labels = {name for name, (_, label) in self._names.items() if label is not None}
        return [name for name in self._names if (name in of_labels) == bool(found & of_labels)]

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """See :class:`Truths`."""
        (name,) = names
        marks, label = self._names[name]
        size = marks.size or size
        mask = torch.from_numpy(marked_pixels(marks, marks.of(label), size))[None]
        if label is None:
            return Evidence(mask, None)
        return Evidence(mask, torch.from_numpy(marked_pixels(marks, marks.of(None), size))[None])

    def points(self, name: str) -> Points:
        """See :class:`Truths`."""
        marks, label = self._names[name]
        at = torch.tensor([marks.places[number] for number in marks.of(label)], dtype=torch.float64).reshape(-1, 2)
        return Points(at, marks.size)

    def pool(self, policies: Policies) -> TwinPool | None:
        """See :class:`Truths`."""
        return None


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
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"kind: no choice '{kind}': {nearest(kind, KINDS)}")
    if isinstance(truth, (str, os.PathLike)):
        return _in_files(Path(truth), objects, kind, key)
    if kind in ("boxes", "points"):
        return Marks(_as_table(truth, "boxes" if kind == "boxes" else "points", names))
    if hasattr(truth, "shape"):
        return MaskStack(truth, objects, names)
    if isinstance(truth, Mapping):
        return MaskMapping(truth, objects)
    if isinstance(truth, Sequence):
        called = numbered(len(truth)) if names is None else names
        return MaskMapping(dict(zip(called, truth)), None if objects is None else dict(zip(called, objects)))
    raise DataError(f"truth: expected a path, masks (N,H,W) or a mapping, found {type(truth).__name__}")


def _in_files(path: Path, objects: Any, kind: str | None, key: str | None) -> Truths:
    if path.is_dir() and (path / "causal.json").is_file():
        from saccade.scoring.causal import CausalTruth

        if objects is not None or kind not in (None, "masks"):
            raise ConfigError(f"{path}: a causal set has masks of all objects; leave out objects and kind")
        return CausalTruth(path)
    if path.is_dir() and (path / "scenes.jsonl").is_file():
        path = path / "scenes.jsonl"  # pictures that `saccade data make` wrote; their truth lies beside them
    if path.suffix.lower() in TABLES and path.is_file():
        if objects is not None:
            raise ConfigError("objects: a table says by its labels what else is in a picture; leave it out")
        table = read_marks(path)
        if kind is not None and kind != table.kind:
            raise DataError(f"{path}: expected {kind}, found {table.kind}")
        return Marks(table)
    if kind in ("boxes", "points"):
        raise DataError(f"{path}: {kind} come as a table, {', '.join(TABLES)}")
    if path.suffix.lower() == ".npy" and path.is_file():
        return MaskStack(npy_stack(path), None if objects is None else npy_stack(Path(objects)), None, str(path))
    return MaskFiles(
        open_members(path, SUFFIXES), None if objects is None else open_members(Path(objects), SUFFIXES), key
    )


def _as_table(truth: Any, kind: Literal["boxes", "points"], names: Sequence[str] | None) -> MarkTable:
    """Boxes or points in memory as a table."""
    if not isinstance(truth, Mapping):
        truth = dict(zip(numbered(len(truth)) if names is None else names, truth))
    table, wide = MarkTable(f"{kind} in memory", kind), 4 if kind == "boxes" else 2
    for name, places in truth.items():
        values = _array(places).reshape(-1, wide) if np.size(_array(places)) % wide == 0 else None
        if values is None or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise DataError(f"{name}: expected {kind} (n,{wide}), finite numbers")
        held = table.pictures.setdefault(str(name), PictureMarks())
        held.places += [tuple(float(each) for each in row) for row in values]
        held.labels, held.segments = [None] * len(held.places), [None] * len(held.places)
    return table


def _array(values: object) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _stack(masks: Any, name: str) -> Any:
    if masks.ndim == 4 and masks.shape[1] == 1:
        masks = masks[:, 0]  # (N,H,W)
    if masks.ndim != 3 or masks.shape[1] * masks.shape[2] == 0:
        raise ShapeError(name, "(N,H,W) with at least one pixel", masks.shape)
    return masks


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
