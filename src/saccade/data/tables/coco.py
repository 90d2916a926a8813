"""Annotations as COCO has them, ``coco:instances.json``: pictures of one category, with boxes and masks as evidence.

A picture that shows one category (once or several times) is a row: its label is the category, its box goes round all
annotations, and its mask is their segmentations (polygons, or run lengths, compressed or not), drawn into the cache.
Pictures with several categories or with none are left out and counted. Pictures are looked for from the file's folder:
there, in ``images`` and ``../images``, and in the folder that the file is named after (``instances_train2017.json`` →
``../train2017``), which also tells the split.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from saccade.data.tables.rows import Cells, json_in
from saccade.data.tables.splits import OTHER_SPLIT
from saccade.data.tables.table import CellRows
from saccade.errors import DataError
from saccade.files import MAX_PIXELS, cache_home, file_digest, read_regular, write_bytes

Mask = np.ndarray[Any, np.dtype[np.bool_]]
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, OverflowError)
"""What a segmentation that is none raises; OverflowError: infinity."""
_BITS = 60  # of a run length


def coco_annotations(path: Path) -> CellRows:
    """The pictures of one category in a file of COCO annotations."""
    images, labels, marked = _read(path)
    folders = _folders(path)
    split = next((name for name in ("train", "val", "test") if re.search(rf"(^|[_-]){name}", path.stem)), None)
    masks = _Masks(cache_home() / "coco-masks" / file_digest(path)[:16])
    rows: list[tuple[str, Cells]] = []
    skipped: list[str] = []
    for number, image in images.items():
        name = str(image.get("file_name", ""))
        of_image = marked.get(number, [])
        found = {str(labels.get(each.get("category_id"))) for each in of_image}
        if len(found) != 1 or found == {"None"}:
            kinds = "no annotation" if not of_image else "unknown category" if "None" in found else "several categories"
            skipped.append(f"{kinds}: {name or number}")
            continue
        cells: dict[str, object] = {"image": _place(name, folders), "label": found.pop(), "box": _box(of_image)}
        try:
            mask = _mask(of_image, image)
        except UNREADABLE as error:
            skipped.append(f"unreadable segmentation: {name}, {error}")
            continue
        if mask is not None:
            cells["mask"] = str(masks.kept(mask, number))
        rows.append((f"picture {number}", cells | ({"split": split} if split else {})))
    masks.close()
    return CellRows(rows, path.parent, skipped, if_empty=OTHER_SPLIT)


def is_coco(path: Path) -> bool:
    """Whether a JSON file begins as annotations of COCO do."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return bool(re.search(r'"(images|annotations|categories)"\s*:\s*\[', file.read(100_000)))
    except OSError:
        return False


def _read(path: Path) -> tuple[dict[int, Any], dict[Any, str], dict[int, list[Any]]]:
    """Pictures by id, names of categories by id, annotations by the id of their picture."""
    try:
        held = json_in(path)
        images = {int(each["id"]): each for each in held["images"]}
        labels = {each["id"]: str(each["name"]).strip() for each in held["categories"]}
        marked: dict[int, list[object]] = defaultdict(list)
        for each in held["annotations"]:
            marked[int(each["image_id"])].append(each)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise DataError(
            f"coco:{path}: not as COCO has it ({type(error).__name__}: {error}); needed are lists of images (id, "
            "file_name), categories (id, name) and annotations (image_id, category_id, bbox or segmentation)"
        ) from error
    return images, labels, marked


def _folders(path: Path) -> list[Path]:
    """Where pictures may lie."""
    here, above = path.parent, path.parent.parent
    called = path.stem.rpartition("_")[2]
    return [here, here / "images", above / "images", here / called, above / called, above / "images" / called]


def _place(name: str, folders: Sequence[Path]) -> str:
    """The picture where it is; its name alone where it is nowhere, so that the message names it."""
    return next((str((folder / name).absolute()) for folder in folders if name and os.path.isfile(folder / name)), name)


def _box(annotations: Sequence[Mapping[str, Any]]) -> list[float] | None:
    """One box, xyxy, round all boxes, which are x, y, width, height; None where there is none."""
    try:
        boxes = [[float(number) for number in each["bbox"]] for each in annotations if each.get("bbox")]
        corners = [(x, y, x + w, y + h) for x, y, w, h in boxes]
    except (ValueError, TypeError):
        return [0.0, 0.0, 0.0, 0.0]  # the row is then left out as one without an area
    if not corners:
        return None
    x1, y1, x2, y2 = zip(*corners)
    return [min(x1), min(y1), max(x2), max(y2)]


def _mask(annotations: Sequence[Mapping[str, Any]], image: Mapping[str, Any]) -> Mask | None:
    """All segmentations of a picture in one (H,W); None where there is none."""
    drawn: Mask | None = None
    for each in annotations:
        parts = each.get("segmentation")
        if not parts:
            continue
        one = _runs(parts) if isinstance(parts, dict) else _polygons(parts, (int(image["height"]), int(image["width"])))
        if drawn is not None and drawn.shape != one.shape:
            raise ValueError(f"sizes {drawn.shape} and {one.shape}")
        drawn = one if drawn is None else drawn | one
    return drawn


def segmentation(parts: Any, size: tuple[int, int]) -> Mask:
    """One segmentation, polygons or run lengths, as a mask of a picture of ``size`` (H, W)."""
    drawn = _runs(parts) if isinstance(parts, dict) else _polygons(parts, size)
    if drawn.shape != size:
        raise ValueError(f"run lengths of {drawn.shape[0]} × {drawn.shape[1]}, in a picture of {size[0]} × {size[1]}")
    return drawn


def _polygons(polygons: Sequence[Sequence[float]], size: tuple[int, int]) -> Mask:
    """What lies inside any of the polygons, each a list x y x y and so on."""
    _check(size)
    canvas = Image.new("1", (size[1], size[0]))
    for polygon in polygons:
        points = [float(number) for number in polygon]
        ImageDraw.Draw(canvas).polygon(list(zip(points[::2], points[1::2])), fill=1)
    return np.asarray(canvas, dtype=bool)


def _runs(told: Mapping[str, Any]) -> Mask:
    """Run lengths down the columns, of zeros first: as numbers, or in COCO's string of six-bit characters."""
    height, width = (int(side) for side in told["size"])
    _check((height, width))
    counts = told["counts"]
    lengths = _counts(counts) if isinstance(counts, str) else [int(count) for count in counts]
    if min(lengths, default=0) < 0 or sum(lengths) != height * width:  # of whole numbers that do not wrap
        raise ValueError(f"runs that do not add up to {height} × {width}")
    values = np.arange(len(lengths)) % 2 == 1  # zeros, ones, zeros …
    return np.repeat(values, lengths).reshape(width, height).T


def _counts(text: str) -> list[int]:
    """COCO's string: five bits a character, the sixth says that more follow; from the third on, differences."""
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


def _check(size: tuple[int, int]) -> None:
    if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
        raise ValueError(f"a size of {size[0]} × {size[1]}")


class _Masks:
    """Masks as pictures in the cache, each drawn once and known by its digest from then on."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._index = folder, folder / "digests.json"
        try:
            self._known = dict(json.loads(read_regular(self._index)))
        except (OSError, ValueError, TypeError):
            self._known = {}
        self._drawn: dict[str, str] = {}

    def kept(self, mask: Mask, number: int) -> Path:
        """The file of the mask of a picture."""
        name = hashlib.sha256(str(number).encode()).hexdigest()[:16]
        path = self._folder / f"{name}.png"
        if not (name in self._known and path.is_file() and file_digest(path) == self._known[name]):
            stream = BytesIO()
            Image.fromarray(mask).save(stream, format="PNG")
            write_bytes(path, stream.getvalue())
            self._drawn[name] = hashlib.sha256(stream.getvalue()).hexdigest()
        return path

    def close(self) -> None:
        """Note the digests of what was drawn."""
        if self._drawn:
            write_bytes(self._index, json.dumps(self._known | self._drawn).encode())
