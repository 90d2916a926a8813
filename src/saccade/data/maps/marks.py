"""Boxes and points as truth: tables (CSV, JSON, JSON lines), COCO annotations, and scenes that saccade wrote.

A row names a picture (``image`` or ``file_name``) and has either a box, ``x1 y1 x2 y2`` or ``box``, or a point, ``x y``
or ``point``, in pixels of the picture. It may have a ``label``: then a map called ``PICTURE__LABEL`` is compared with
the rows of that label alone, and the other rows of the picture are its other objects. ``width`` and ``height`` are
those of the picture; without them, coordinates are in pixels of the map.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil, floor
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from saccade.data.maps.arrays import stem_of
from saccade.data.tables.rows import UnusableRowError, box_in, csv_rows, is_blank, json_in, jsonl_rows, numbers_in
from saccade.errors import DataError
from saccade.files import MAX_PIXELS
from saccade.geometry import Size

Kind = Literal["boxes", "points"]
_IMAGES = ("image", "file_name", "file", "picture")
_LABELS = ("label", "asked", "category", "class")


@dataclass
class PictureMarks:
    """What is marked in one picture."""

    size: Size | None = None  # (H, W), where it is known
    # Boxes xyxy or points (x, y), in pixels of the picture.
    places: list[tuple[float, ...]] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)
    # For COCO: the segmentation of each place; None where it has only a box.
    segments: list[Any] = field(default_factory=list)

    def of(self, label: str | None) -> list[int]:
        """The numbers of the places with that label; None: of all."""
        return [at for at, found in enumerate(self.labels) if label is None or found == label]


@dataclass
class MarkTable:
    """Marks of pictures by the path of the picture without its suffix."""

    where: str
    kind: Kind
    pictures: dict[str, PictureMarks] = field(default_factory=dict)
    unusable: list[str] = field(default_factory=list)  # Rows that could not be read, with the reason

    def add(self, image: str, place: tuple[float, ...], label: str | None, size: Size | None, segment: object) -> None:
        """Add a mark."""
        held = self.pictures.setdefault(stem_of(image), PictureMarks())
        if size is not None and held.size not in (None, size):
            raise UnusableRowError("two sizes of one picture", f"{held.size} and {size}")
        held.size = held.size or size
        held.places.append(place)
        held.labels.append(label)
        held.segments.append(segment)


def read_marks(path: Path) -> MarkTable:
    """The table in a CSV, JSON or JSON lines file."""
    suffix = path.suffix.lower()
    unusable: list[str] = []
    if suffix == ".csv":
        return _table(path, csv_rows(path, ["image"]), unusable)
    if suffix == ".jsonl":
        return _table(path, jsonl_rows(path, unusable), unusable)
    values = json_in(path)
    if isinstance(values, dict):
        if {"images", "annotations"} <= values.keys():
            return _coco(path, values)
        values = list(_spread(path, values))
    if not isinstance(values, list) or not all(isinstance(row, dict) for row in values):
        raise DataError(
            f"{path}: expected a list of rows with image and box or point, a mapping picture → boxes or points, or "
            "COCO annotations"
        )
    return _table(path, enumerate(values, start=1), unusable)


def marked_pixels(marks: PictureMarks, chosen: Sequence[int], size: Size) -> npt.NDArray[np.bool_]:
    """The pixels (H,W) of a picture of ``size`` that the chosen boxes or segmentations touch."""
    from saccade.data.tables.coco import UNREADABLE, segmentation

    inside = np.zeros(size, dtype=bool)
    for at in chosen:
        if marks.segments[at] is not None:
            try:
                inside |= segmentation(marks.segments[at], size)
            except UNREADABLE as error:
                raise DataError(f"unreadable segmentation ({error})") from error
            continue
        x1, y1, x2, y2 = marks.places[at]
        rows, columns = slice(max(0, floor(y1)), max(0, ceil(y2))), slice(max(0, floor(x1)), max(0, ceil(x2)))
        inside[rows, columns] = True
    return inside


def _table(path: Path, rows: Iterable[tuple[int, Mapping[str, object]]], unusable: list[str]) -> MarkTable:
    table: MarkTable | None = None
    for number, cells in rows:
        try:
            for kind, image, place, label, size in _marks(cells):
                if table is None:
                    table = MarkTable(str(path), kind)
                if kind != table.kind:
                    raise UnusableRowError(f"a row of {kind} in a table of {table.kind}")
                table.add(image, place, label, size, None)
        except UnusableRowError as error:
            unusable.append(error.at(f"line {number}"))
    if table is None:
        first = f" ({unusable[0]})" if unusable else ""
        raise DataError(f"{path}: no boxes and no points{first}; a row has image and x1 y1 x2 y2, box, x y or point")
    table.unusable = unusable
    return table


_Mark = tuple[Kind, str, tuple[float, ...], str | None, Size | None]


def _marks(cells: Mapping[str, object]) -> Iterator[_Mark]:
    """The marks of one row: one, or those of all objects of a scene that saccade wrote."""
    image = next((cells[name] for name in _IMAGES if not is_blank(cells.get(name))), "")
    if not isinstance(image, str) or not image.strip():
        raise UnusableRowError("no image")
    size = _size(cells)
    objects = cells.get("objects")
    if isinstance(objects, list):
        for each in objects:
            if not isinstance(each, dict):
                raise UnusableRowError("unreadable objects")
            yield _mark(image.strip(), each, size)
        return
    yield _mark(image.strip(), cells, size)


def _mark(image: str, cells: Mapping[str, object], size: Size | None) -> _Mark:
    found = next((cells[name] for name in _LABELS if not is_blank(cells.get(name))), None)
    label = None if found is None else str(found).strip()
    corners = [cells.get(name) for name in ("x1", "y1", "x2", "y2")]
    box = box_in(corners if not any(map(is_blank, corners)) else cells.get("box"))
    if box is not None:
        return "boxes", image, box, label, size
    at = [cells.get("x"), cells.get("y")]
    point = numbers_in(at if not any(map(is_blank, at)) else cells.get("point"), "point", 2)
    if point is None:
        raise UnusableRowError("neither box nor point")
    return "points", image, point, label, size


def _size(cells: Mapping[str, object]) -> Size | None:
    sides = [cells.get("height"), cells.get("width")]
    if any(map(is_blank, sides)):
        return None
    found = numbers_in(sides, "size", 2) or (0, 0)
    if min(found) < 1 or found[0] * found[1] > MAX_PIXELS or any(side != int(side) for side in found):
        raise UnusableRowError("unreadable size", f"width {sides[1]}, height {sides[0]}")
    return int(found[0]), int(found[1])


def _spread(path: Path, values: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    """Rows of a mapping picture → list of boxes or points."""
    for image, places in values.items():
        places = places if isinstance(places, list) else [places]
        if places and not isinstance(places[0], (list, dict)):
            places = [places]
        for place in places:
            if isinstance(place, dict):
                yield {"image": image, **place}
            elif isinstance(place, list) and len(place) in (2, 4):
                yield {"image": image, "box" if len(place) == 4 else "point": place}
            else:
                raise DataError(f"{path}: '{image[:80]}': expected boxes of 4 numbers or points of 2")


def _coco(path: Path, values: Mapping[str, Any]) -> MarkTable:
    """Annotations of COCO: a box and perhaps a segmentation each, with the category as the label."""
    from saccade.data.tables.coco import UNREADABLE, coco_parts

    table = MarkTable(str(path), "boxes")
    images, names, annotations = coco_parts(path, values)
    for number, (picture, annotation) in enumerate(annotations, start=1):
        try:
            image, segment = images[picture], annotation.get("segmentation") or None
            size = _size(image)
            if size is None and segment is not None:
                raise UnusableRowError("a segmentation in a picture without width and height")
            x, y, width, height = map(float, annotation["bbox"]) if annotation.get("bbox") else (0.0, 0.0, 0.0, 0.0)
            if segment is None:
                box_in([x, y, x + width, y + height])
            label = names.get(annotation.get("category_id"))
            table.add(str(image["file_name"]), (x, y, x + width, y + height), label, size, segment)
        except UnusableRowError as error:
            table.unusable.append(error.at(f"annotation {number}"))
        except UNREADABLE as error:
            table.unusable.append(f"unreadable annotation: annotation {number}, {error}")
    for image in images.values():  # a picture without annotations has an empty mask
        with suppress(KeyError, UnusableRowError):
            table.pictures.setdefault(stem_of(str(image["file_name"])), PictureMarks(_size(image)))
    return table
