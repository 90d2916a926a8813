"""Where the objects of photographs are: masks beside them, COCO annotations, or a network that marks what stands out.

A folder of masks has a file for each picture, with its name. How its values are meant is read off the first
:data:`_SAMPLE` of them, or said in front, as in ``labels:DIR``:

==========  ============================================================================================================
trimaps     1 is the object, 2 the ground, 3 a border along the edge: its outer half counts as ground
binary      0 is the ground, anything else the object
labels      0 is the ground, 255 belongs to nobody, any other value or colour is an object of its own
grey        soft-edged, of 33 greys or more: 128 and brighter is the object
==========  ============================================================================================================

``coco:FILE`` has named objects; crowds belong to nobody. ``auto`` asks U²-Net-p (Qin et al., Pattern Recognition 2020),
which ``saccade data get u2netp`` fetches and onnxruntime (extra ``photo``) runs, for the one object that stands out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from saccade.data.causal import Pixels
from saccade.data.causal.filling import grown, network
from saccade.data.causal.photographs import MOST_OBJECTS, REST
from saccade.data.pictures.files import FORMATS, SUFFIXES, check_size, find_files
from saccade.data.pictures.reading import Picture
from saccade.data.tables.coco import UNREADABLE, coco_parts, segmentation
from saccade.data.tables.rows import csv_rows, json_in
from saccade.errors import DataError
from saccade.files import MAX_PIXELS, open_regular

READINGS = ("trimaps", "binary", "labels", "grey")
AUTO, COCO = "auto", "coco"
MIN_SHARE = 0.002  # of the picture; a smaller object is a thing that no twin changes
_MOST_THINGS = 250
_SAMPLE = 50
_GREYS = 33  # Values from which on a grey picture is soft-edged, not a map of labels
_U2NETP, _SIDE = "u2netp", 320

Values = npt.NDArray[np.int64]


class UnusablePictureError(Exception):
    """Why a photograph is left out, in words that can be counted."""


class Things(NamedTuple):
    """What is marked in a picture."""

    map: Pixels  # (H,W): 0 is ground, k + 1 is thing k, 255 belongs to nobody
    names: Sequence[str | None]


Marker = Callable[[str, Picture], Things]  # (name, picture) → its things, or an UnusablePictureError


class Marked(NamedTuple):
    """A photograph with its objects, ready for twins."""

    name: str
    label: str | None
    pixels: Pixels  # (H,W,3)
    labels: Pixels  # (H,W): 0 is ground, k + 1 is object k, 255 is a thing that no twin changes
    names: tuple[str | None, ...]  # of the objects
    others: frozenset[str | None]  # names of things that no twin changes
    target: int
    left_out: tuple[str, ...]
    sources: tuple[str, ...]  # files it was made from


def marked(name: str, picture: Picture, things: Things, label: str | None, size: int, max_share: float) -> Marked:
    """The photograph at its size with up to four objects, the largest first."""
    scale = min(1.0, size / max(picture.size))
    height, width = (max(1, round(side * scale)) for side in picture.size)
    pixels = np.array(picture.image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0))
    found = np.array(Image.fromarray(things.map).resize((width, height), Image.Resampling.NEAREST))
    shares = np.bincount(found.ravel(), minlength=256)[1 : len(things.names) + 1] / found.size
    order = [int(thing) for thing in np.argsort(-shares, kind="stable") if shares[thing] > 0]
    if not order:
        raise UnusablePictureError("no object")
    bearing = [thing for thing in order if label is not None and things.names[thing] == label]
    target = (bearing or order)[0]
    if label is None and things.names[target] is not None:  # any object will do: the largest that can be removed
        target = next((thing for thing in order if shares[thing] <= max_share), target)
        label = things.names[target]
    large, small = f"object over {max_share:.0%} of the picture", f"object under {MIN_SHARE:.1%} of the picture"
    if shares[target] > max_share or shares[target] < MIN_SHARE:
        raise UnusablePictureError(large if shares[target] > max_share else small)
    usable = [thing for thing in order if MIN_SHARE <= shares[thing] <= max_share]
    objects = sorted({target, *[thing for thing in usable if thing != target][: MOST_OBJECTS - 1]}, key=order.index)
    lut = np.full(256, REST, np.uint8)
    lut[0] = 0
    for number, thing in enumerate(objects):
        lut[thing + 1] = number + 1
    beyond = f"object beyond the {MOST_OBJECTS} largest"
    reasons = (large if shares[each] > max_share else beyond if each in usable else small for each in order)
    return Marked(
        name,
        label,
        pixels,
        lut[found],
        tuple(things.names[thing] for thing in objects),
        frozenset(things.names[thing] for thing in order if thing not in objects),
        objects.index(target),
        tuple(reason for thing, reason in zip(order, reasons) if thing not in objects),
        (name,),
    )


def marker(reference: str, names: Sequence[str]) -> tuple[str, Marker]:
    """How objects are found in the pictures ``names``, and what that is called.

    Args:
        reference: a folder of masks, READING:FOLDER, coco:FILE or auto.
        names: paths of the pictures from their folder.
    """
    kind, colon, path = reference.partition(":")
    if reference == AUTO:
        return AUTO, _standing_out()
    if colon and kind == COCO:
        return COCO, _annotated(Path(path).expanduser(), names)
    if not colon or kind not in READINGS:
        kind, path = "", reference
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"masks: {path} is not a folder; expected a folder of masks, coco:FILE, auto, or one of "
            f"{', '.join(f'{each}:FOLDER' for each in READINGS)}"
        )
    files = {_stem(file.relative_to(folder)): file for file in find_files([folder], SUFFIXES, "mask")}
    beside = {name: file for name in names if (file := files.get(_stem(Path(name)), files.get(Path(name).stem)))}
    if not beside:
        raise DataError(f"masks: no file in {folder} has the name of a picture, as {Path(names[0]).stem}.png would")
    kind = kind or _reading(list(beside.values())[:_SAMPLE])

    def mark(name: str, picture: Picture) -> Things:
        if name not in beside:
            raise UnusablePictureError("no mask")
        try:
            values, _ = _values(beside[name])
        except (OSError, ValueError, SyntaxError, DataError, Image.DecompressionBombError) as error:
            raise UnusablePictureError("mask that cannot be read") from error
        if values.shape != picture.size:
            raise UnusablePictureError("mask of another size")
        return _things(values, kind)

    return kind, mark


def labeller(table: Path | None, names: Sequence[str]) -> Callable[[str], str | None]:
    """What a picture shows: by a CSV with the columns image and label, else the name of the folder it lies in."""
    if table is None:
        return lambda name: Path(name).parent.name or None
    labels: dict[str, str] = {}
    for _, cells in csv_rows(table, ("image", "label")):
        if (image := str(cells["image"] or "").strip()) and (label := str(cells["label"] or "").strip()):
            labels |= {_stem(Path(image)): label, Path(image).stem: label}

    def label_of(name: str) -> str | None:
        return labels.get(_stem(Path(name)), labels.get(Path(name).stem))

    if not any(map(label_of, names)):
        raise DataError(f"{table}: no image of it is one of the pictures, such as {names[0]}")
    return label_of


def _stem(path: Path) -> str:
    return path.with_suffix("").as_posix()


def _values(path: Path) -> tuple[Values, str]:
    """The values of a mask (H,W), of one in colours a number for each colour; and its mode."""
    with open_regular(path) as file, Image.open(file, formats=FORMATS) as image:
        check_size(image.size, str(path), MAX_PIXELS)
        mode = image.mode
        values = np.asarray(image.convert("RGB") if mode not in ("1", "L", "P", "I;16", "I") else image)
    if values.ndim == 3:
        red, green, blue = values.astype(np.int64).transpose(2, 0, 1)
        return (red, "L") if np.array_equal(red, green) and np.array_equal(red, blue) else (
            red << 16 | green << 8 | blue, mode
        )  # fmt: skip
    return values.astype(np.int64), mode


def _reading(files: Sequence[Path]) -> str:
    """How masks are meant, by their values."""
    counts: Counter[int] = Counter()
    modes = set()
    for file in files:
        try:
            values, mode = _values(file)
        except (OSError, ValueError, SyntaxError, DataError, Image.DecompressionBombError):
            continue
        counts.update(np.unique(values).tolist())
        modes.add(mode)
    if {2} <= set(counts) <= {1, 2, 3}:
        return "trimaps"
    if len(counts) <= 2:
        return "binary"
    return "grey" if modes == {"L"} and len(counts) >= _GREYS and max(counts) == 255 else "labels"


def _things(values: Values, kind: str) -> Things:
    """The things of a mask."""
    if kind == "labels":
        numbers, inverse = np.unique(values, return_inverse=True)
        areas = np.bincount(inverse.ravel())
        are_things = (numbers != 0) & (numbers != REST)
        largest = sorted(np.flatnonzero(are_things), key=lambda at: -areas[at])[:_MOST_THINGS]
        lut = np.where(numbers == 0, 0, REST).astype(np.uint8)
        lut[sorted(largest)] = np.arange(1, len(largest) + 1)
        return Things(lut[inverse].reshape(values.shape), (None,) * len(largest))
    if kind == "trimaps":
        ground = values == 2
        edge = grown(ground, 1) & ~ground
        width = (values == 3).sum() / max(edge.sum(), 1)
        is_object = (values == 1) | ~grown(ground, round(float(width) / 2))
    else:
        is_object = values > 127 if kind == "grey" else values != 0
    return Things(is_object.astype(np.uint8), (None,))


def _annotated(path: Path, pictures: Sequence[str]) -> Marker:
    """The objects of COCO annotations, small ones above large ones."""
    images, names, annotated = coco_parts(path, json_in(path))
    by_picture: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for number, annotation in annotated:
        by_picture[number].append(annotation)
    files = {str(image.get("file_name", "")): number for number, image in images.items()}
    files = {Path(file).name: number for file, number in files.items()} | files
    if not any(name in files or Path(name).name in files for name in pictures):
        raise DataError(f"masks: no file_name in {path} is one of the pictures, such as {pictures[0]}")

    def mark(name: str, picture: Picture) -> Things:
        number = files.get(name, files.get(Path(name).name))
        if number is None:
            raise UnusablePictureError("no annotation")
        if (images[number].get("height"), images[number].get("width")) != picture.size:
            raise UnusablePictureError("mask of another size")
        try:
            drawn = [(each, segmentation(each["segmentation"], picture.size))
                     for each in by_picture[number] if each.get("segmentation")]  # fmt: skip
        except UNREADABLE as error:
            raise UnusablePictureError("mask that cannot be read") from error
        drawn.sort(key=lambda pair: (not pair[0].get("iscrowd"), -int(pair[1].sum())))
        things, called = np.zeros(picture.size, np.uint8), list[str | None]()
        for annotation, mask in drawn:
            if annotation.get("iscrowd") or len(called) == _MOST_THINGS:
                things[mask] = REST
            else:
                called.append(names.get(annotation.get("category_id")))
                things[mask] = len(called)
        return Things(things, called)

    return mark


def _standing_out() -> Marker:
    """The object that stands out, by U²-Net-p."""
    session = network(_U2NETP, "masks auto")
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])

    def mark(name: str, picture: Picture) -> Things:
        small = np.asarray(picture.image.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS), np.float64)
        values = (small / max(small.max(), 1.0) - mean) / deviation
        inputs = {session.get_inputs()[0].name: values.transpose(2, 0, 1)[None].astype(np.float32)}
        chance = session.run(None, inputs)[0][0, 0]  # (320,320) in 0..1
        height, width = picture.size
        large = Image.fromarray(chance).resize((width, height), Image.Resampling.BILINEAR)
        return Things((np.asarray(large) > 0.5).astype(np.uint8), (None,))

    return mark
