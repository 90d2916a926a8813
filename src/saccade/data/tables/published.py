"""Files in the layout of published data sets: annotations as COCO has them, and the text files of CUB-200-2011.

**COCO**, ``coco:instances.json``: pictures of one category, with boxes and masks as evidence. A picture that shows one
category is a row: its box goes round all annotations, and its mask is their segmentations (polygons or run lengths),
drawn into the cache. Pictures with several categories or with none are left out and counted. Pictures are looked for in
the file's folder, in ``images`` and ``../images``, and in the folder that the file is named after
(``instances_train2017.json`` → ``../train2017``), which also tells the split.

**CUB-200-2011** in its official layout: Wah, Branson, Welinder, Perona, Belongie, "The Caltech-UCSD Birds-200-2011
Dataset" (CNS-TR-2011-001): ``CUB_200_2011/``, and ``attributes.txt`` inside it or beside it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from saccade.data.examples import hashed_share
from saccade.data.pictures.files import write_if_changed
from saccade.data.tables.rows import Cells, json_in
from saccade.data.tables.table import CellRows
from saccade.errors import DataError
from saccade.files import MAX_PIXELS, cache_home, file_digest

Mask = np.ndarray[Any, np.dtype[np.bool_]]
# What a segmentation that is none raises; OverflowError: infinity.
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, OverflowError)
_BITS = 60  # of a run length


def coco_annotations(path: Path) -> CellRows:
    """The pictures of one category in a file of COCO annotations."""
    images, annotations_of = annotated_pictures(path)
    here, above, called = path.parent, path.parent.parent, path.stem.rpartition("_")[2]
    folders = [here, here / "images", above / "images", here / called, above / called, above / "images" / called]
    split = next((name for name in ("train", "val", "test") if re.search(rf"(^|[_-]){name}", path.stem)), None)
    masks = cache_home() / "coco-masks" / file_digest(path)[:16]
    rows: list[tuple[str, Cells]] = []
    skipped: list[str] = []
    for number, image in images.items():
        name = str(image.get("file_name", ""))
        labels = {label for label, _ in annotations_of[number]}
        annotations = [annotation for _, annotation in annotations_of[number]]
        if len(labels) != 1 or labels == {None}:
            why = "several categories" if len(labels) > 1 else "unknown category" if labels else "no annotation"
            skipped.append(f"{why}: {name or number}")
            continue
        cells: dict[str, object] = {"image": _place(name, folders), "label": labels.pop(), "box": _box(annotations)}
        try:
            mask = _mask(annotations, image)
        except UNREADABLE as error:
            skipped.append(f"unreadable segmentation: {name}, {error}")
            continue
        if mask is not None:
            stream = BytesIO()
            Image.fromarray(mask).save(stream, format="PNG")
            file = masks / f"{hashlib.sha256(str(number).encode()).hexdigest()[:16]}.png"
            cells["mask"] = str(write_if_changed(file, stream.getvalue()))
        rows.append((f"picture {number}", cells | ({"split": split} if split else {})))
    return CellRows(rows, path.parent, skipped)


def annotated_pictures(path: Path) -> tuple[dict[int, Any], dict[int, list[tuple[str | None, Any]]]]:
    """The pictures of a file by id, and the annotations of each with the name of the category."""
    images, annotations = coco_parts(path, json_in(path))
    of_picture: dict[int, list[tuple[str | None, Any]]] = defaultdict(list)
    for number, name, annotation in annotations:
        of_picture[number].append((name, annotation))
    return images, of_picture


def coco_parts(path: Path, content: Any) -> tuple[dict[int, Any], list[tuple[int, str | None, Any]]]:
    """Pictures by id, and annotations with the ids of the picture and the name of the category."""
    try:
        images = {int(image["id"]): image for image in content["images"]}
        names = {category["id"]: str(category["name"]).strip() for category in content.get("categories", [])}
        annotations = [
            (int(annotation["image_id"]), names.get(annotation.get("category_id")), annotation)
            for annotation in content["annotations"]
        ]
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise DataError(
            f"{path}: not as COCO has it ({type(error).__name__}: {error}); needed are lists of images (id, file_name, "
            "width, height), categories (id, name) and annotations (image_id, category_id, bbox or segmentation)"
        ) from error
    return images, annotations


def _place(name: str, folders: Sequence[Path]) -> str:
    return next((str((folder / name).absolute()) for folder in folders if name and os.path.isfile(folder / name)), name)


def _box(annotations: Sequence[Mapping[str, Any]]) -> list[float] | None:
    """One box, xyxy, round all boxes, which are x, y, width, height; None where there is none."""
    try:
        boxes = [map(float, annotation["bbox"]) for annotation in annotations if annotation.get("bbox")]
        corners = [(x, y, x + w, y + h) for x, y, w, h in boxes]
    except (ValueError, TypeError):
        return [0.0, 0.0, 0.0, 0.0]  # the row is then left out as one without an area
    if not corners:
        return None
    x1, y1, x2, y2 = zip(*corners)
    return [min(x1), min(y1), max(x2), max(y2)]


def _mask(annotations: Sequence[Mapping[str, Any]], image: Mapping[str, Any]) -> Mask | None:
    drawn: Mask | None = None
    for part in filter(None, (annotation.get("segmentation") for annotation in annotations)):
        says_size = isinstance(part, dict) and "height" not in image  # run lengths know it themselves
        height, width = part["size"] if says_size else (image["height"], image["width"])
        mask = segmentation(part, (int(height), int(width)))
        drawn = mask if drawn is None else drawn | mask
    return drawn


def segmentation(parts: Any, size: tuple[int, int]) -> Mask:
    """One segmentation, run lengths or polygons (each a list x y x y …), as a mask of a picture of ``size`` (H, W)."""
    if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
        raise ValueError(f"a size of {size[0]} × {size[1]}")
    if isinstance(parts, dict):
        return _runs(parts, size)
    canvas = Image.new("1", (size[1], size[0]))
    for polygon in parts:
        points = [float(number) for number in polygon]
        ImageDraw.Draw(canvas).polygon(list(zip(points[::2], points[1::2])), fill=1)
    return np.asarray(canvas, dtype=bool)


def _runs(runs: Mapping[str, Any], size: tuple[int, int]) -> Mask:
    """Run lengths down the columns, of zeros first: as numbers, or in COCO's string of six-bit characters."""
    height, width = (int(side) for side in runs["size"])
    if (height, width) != size:
        raise ValueError(f"run lengths of a size of {height} × {width}, in a picture of {size[0]} × {size[1]}")
    counts = runs["counts"]
    lengths = _counts(counts) if isinstance(counts, str) else [int(count) for count in counts]
    if min(lengths, default=0) < 0 or sum(lengths) != height * width:  # of whole numbers that do not wrap
        raise ValueError(f"runs that do not add up to {height} × {width}")
    values = np.arange(len(lengths)) % 2 == 1  # zeros, ones, zeros …
    return np.repeat(values, lengths).reshape(width, height).T


def _counts(text: str) -> list[int]:
    """COCO's string: five bits a character, the sixth says that more follow; from the fourth on, differences."""
    counts: list[int] = []
    at = 0
    while at < len(text):
        value, shift, more = 0, 0, True
        while more:
            if shift > _BITS:
                raise ValueError("a run length beyond any picture")
            part = ord(text[at]) - 48
            value |= (part & 0x1F) << shift
            more = bool(part & 0x20)
            at, shift = at + 1, shift + 5
        if part & 0x10:
            value |= -1 << shift  # negative
        counts.append(value + counts[-2] if len(counts) > 2 else value)
    return counts


_VAL_OF_TRAIN = 0.1


class CubFiles:
    """The text files of the data set; numbers stay text.

    ``images``: picture → its file below images/. ``species``: species → its name. ``species_of``: picture → species.
    ``boxes``: picture → box of the bird, xyxy. ``splits``: picture → split; val is a tenth of the official train.
    """

    def __init__(self, path: Path) -> None:
        places = (path, path / "CUB_200_2011")
        folder = next((place for place in places if (place / "images.txt").is_file()), None)
        if folder is None:
            raise DataError(f"{path}: no images.txt here or in CUB_200_2011; name the folder that was unpacked")
        self.folder = folder
        self.images = dict(self._lines("images.txt", 2))
        self.species = dict(self._lines("classes.txt", 2))
        self.species_of = dict(self._lines("image_class_labels.txt", 2))
        is_train = dict(self._lines("train_test_split.txt", 2))
        self.boxes: dict[str, tuple[float, float, float, float]] = {}
        for number, *numbers in self._lines("bounding_boxes.txt", 5):
            x, y, width, height = map(float, numbers)
            self.boxes[number] = (x, y, x + width, y + height)
        try:
            self.splits = {
                number: "test" if is_train[number] != "1" else "val" if hashed_share(name) < _VAL_OF_TRAIN else "train"
                for number, name in self.images.items()
                if self.species[self.species_of[number]] and self.boxes[number]
            }
        except KeyError as error:
            raise DataError(f"{folder}: its files say nothing of number {error}; unpack it again") from error

    @cached_property
    def clicks(self) -> dict[tuple[str, str], tuple[float, float]]:
        """(picture, part as in parts.txt) → where it was clicked, visible parts only."""
        parts = {number: name for number, name in self._lines("parts/parts.txt", 2)}
        clicks = {}
        for number, part, *numbers in self._lines("parts/part_locs.txt", 5):
            x, y, visible = map(float, numbers)
            if visible and part in parts:
                clicks[number, parts[part]] = (x, y)
        return clicks

    @cached_property
    def percent(self) -> dict[tuple[str, str], dict[str, float]]:
        """(species, part) → how many percent of the annotators named each colour."""
        places = ("attributes/attributes.txt", "attributes.txt", "../attributes.txt")
        names = next((place for place in places if (self.folder / place).is_file()), places[0])
        attributes = [name for _, name in self._lines(names, 2)]
        table = "attributes/class_attribute_labels_continuous.txt"
        rows = list(self._lines(table, len(attributes)))
        if len(rows) != len(self.species):
            raise DataError(
                f"{self.folder / table}: {len(rows)} lines for {len(self.species)} species; unpack it again"
            )
        percent: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for species, numbers in zip(self.species, rows):
            for attribute, value in zip(attributes, map(float, numbers)):
                kind, _, colour = attribute.partition("::")
                if kind.startswith("has_") and kind.endswith("_color"):
                    percent[species, kind[len("has_") : -len("_color")]][colour] = value
        return dict(percent)

    def _lines(self, file: str, cells: int) -> Iterator[list[str]]:
        path = self.folder / file
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            parts = line.split(maxsplit=cells - 1)
            if len(parts) != cells:
                raise DataError(f"{path}: line {number} has {len(parts)} cells, expected {cells}; unpack it again")
            yield [part.strip() for part in parts]
