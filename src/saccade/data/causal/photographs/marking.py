"""Where the objects of photographs are: masks beside them, COCO annotations, or a network that marks what stands out.

Masks and annotations are those of the picture as a viewer shows it. They belong to the picture with the same path
without its suffix, else to the one with the same bare name, unless several share that.

A folder of masks has a file for each picture. The values of the first :data:`_SAMPLE` of them tell their kind, unless
it is named, as in ``labels:DIR``:

==========  ============================================================================================================
trimaps     1 is the object, 2 the ground, 3 a border along the edge: its outer half counts as ground
binary      0 is the ground, anything else the object
labels      0 or black is the ground, 255 belongs to nobody, any other value or colour is an object of its own
grey        soft-edged, of 33 greys or more: 128 and brighter is the object
==========  ============================================================================================================

``coco:FILE`` has named objects; crowds belong to nobody. ``auto`` asks U²-Net-p (Qin et al., Pattern Recognition 2020),
which ``saccade data get u2netp`` fetches and onnxruntime (extra ``photo``) runs, for the one object that stands out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from saccade.data.causal.photographs.filling import grown, network
from saccade.data.causal.photographs.format import MOST_OBJECTS
from saccade.data.causal.row_folder import REST, Pixels
from saccade.data.maps import sound, stem_of
from saccade.data.pictures.files import FORMATS, SUFFIXES, check_size, find_files
from saccade.data.pictures.reading import Picture
from saccade.data.tables.published import UNREADABLE, annotated_pictures, segmentation
from saccade.data.tables.rows import csv_rows
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
Entry = TypeVar("Entry")


class UnusablePictureError(Exception):
    """Why a photograph is left out, in words that can be counted."""


class Things(NamedTuple):
    """What is marked in a picture."""

    map: Pixels  # (H,W): 0 is ground, k + 1 is thing k, 255 belongs to nobody
    names: Sequence[str | None]
    others: frozenset[str | None] = frozenset()  # names of what belongs to nobody


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
    """The photograph at its size with up to four objects, the largest first.

    The target is the largest object with the name ``label``, else the largest of all. Without a label it is the largest
    that can be removed, whose name becomes the label.
    """
    scale = min(1.0, size / max(picture.size))
    height, width = (max(1, round(side * scale)) for side in picture.size)
    pixels = np.array(picture.image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0))
    scaled = np.array(Image.fromarray(things.map).resize((width, height), Image.Resampling.NEAREST))
    shares = np.bincount(scaled.ravel(), minlength=256)[1 : len(things.names) + 1] / scaled.size
    if not shares.any():
        raise UnusablePictureError("no object")
    order = [int(thing) for thing in np.argsort(-shares, kind="stable")]
    bearing = [thing for thing in order if label is not None and things.names[thing] == label]
    target = (bearing or order)[0]
    if label is None and things.names[target] is not None:
        target = next((thing for thing in order if shares[thing] <= max_share), target)
        label = things.names[target]
    large, small = f"object over {max_share:.0%} of the picture", f"object under {MIN_SHARE:.1%} of the picture"
    if shares[target] > max_share or shares[target] < MIN_SHARE:
        raise UnusablePictureError(large if shares[target] > max_share else small)
    usable = [thing for thing in order if MIN_SHARE <= shares[thing] <= max_share]
    objects = sorted({target, *[thing for thing in usable if thing != target][: MOST_OBJECTS - 1]}, key=order.index)
    rest = [thing for thing in order if thing not in objects]
    grey_of = np.full(256, REST, np.uint8)
    grey_of[0] = 0
    grey_of[np.array(objects) + 1] = np.arange(1, len(objects) + 1)
    beyond = f"object beyond the {MOST_OBJECTS} largest"
    return Marked(
        name,
        label,
        pixels,
        labels=grey_of[scaled],
        names=tuple(things.names[thing] for thing in objects),
        others=things.others | {things.names[thing] for thing in rest},
        target=objects.index(target),
        left_out=tuple(large if shares[thing] > max_share else beyond if thing in usable else small for thing in rest),
        sources=(name,),
    )


def marker(reference: str, names: Sequence[str]) -> tuple[str, Marker]:
    """How objects are found in the pictures ``names``, and what that is called.

    ``reference`` is a folder of masks, READING:FOLDER, coco:FILE or auto.
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
            f"{', '.join(f'{reading}:FOLDER' for reading in READINGS)}"
        )
    files = find_files([folder], SUFFIXES, "mask")
    mask_of = _by_picture({file.relative_to(folder).as_posix(): file for file in files}, names)
    if not mask_of:
        raise DataError(f"masks: no file in {folder} has the name of a picture, as {Path(names[0]).stem}.png would")
    kind = kind or _reading(list(mask_of.values())[:_SAMPLE])
    return kind, _looked_up(mask_of, lambda file: _things(_values(file)[0], kind), "no mask")


def _looked_up(entry_of: Mapping[str, Entry], read: Callable[[Entry], Things], missing: str) -> Marker:
    """Reads what is marked in a picture from its entry; without one it is left out as ``missing``."""

    def mark(name: str, picture: Picture) -> Things:
        if name not in entry_of:
            raise UnusablePictureError(missing)
        try:
            things = read(entry_of[name])
        except (DataError, *UNREADABLE) as error:
            raise UnusablePictureError("mask that cannot be read") from error
        if things.map.shape != picture.size:
            raise UnusablePictureError("mask of another size")
        return things

    return mark


def labeller(table: Path | None, names: Sequence[str]) -> Callable[[str], str | None]:
    """What a picture shows: by a CSV with the columns image and label, else the name of its folder."""
    if table is None:
        return lambda name: Path(name).parent.name or None
    label_of: dict[str, str | None] = {}
    for _, cells in csv_rows(table, ("image", "label")):
        image, label = (str(cells[column] or "").strip() for column in ("image", "label"))
        if image and label:
            label_of[image] = label if label_of.get(image, label) == label else None
    matched = _by_picture(label_of, names)
    if not matched:
        raise DataError(f"{table}: no image of it is one of the pictures, such as {names[0]}")
    return matched.get


def _by_picture(entries: Mapping[str, Entry], names: Sequence[str]) -> dict[str, Entry]:
    """By the name of each picture its entry: that of the same path, else that of the same bare name if it is alone."""
    times = Counter(Path(path).stem for path in entries) | Counter(Path(name).stem for name in names)  # the larger one
    by_path = {stem_of(path): entry for path, entry in entries.items()}
    by_bare_name = {Path(path).stem: entry for path, entry in entries.items()}
    matched: dict[str, Entry] = {}
    for name in names:
        path, bare_name = stem_of(name), Path(name).stem
        if path in by_path:
            matched[name] = by_path[path]
        elif bare_name in by_bare_name and times[bare_name] == 1:
            matched[name] = by_bare_name[bare_name]
    return matched


def _values(path: Path) -> tuple[Values, bool]:
    """The values of a mask (H,W), in colours a number beyond 255 for each but black; and whether it is a plain grey."""
    with sound(str(path)), open_regular(path) as file, Image.open(file, formats=FORMATS) as stored:
        check_size(stored.size, str(path), MAX_PIXELS)
        image = ImageOps.exif_transpose(stored)
        has_values = image.mode in ("1", "L", "P") or image.mode.startswith("I")
        values = np.asarray(image if has_values else image.convert("RGB")).astype(np.int64)
    if values.ndim == 2:
        return values, image.mode == "L"
    red, green, blue = values.transpose(2, 0, 1)
    if np.array_equal(red, green) and np.array_equal(red, blue):
        return red, True
    return (red << 16 | green << 8 | blue) + (values.any(2) << 24), False


def _reading(files: Sequence[Path]) -> str:
    """How masks are meant, by their values."""
    numbers, are_grey = set[int](), True
    for file in files:
        with suppress(DataError):
            values, is_grey = _values(file)
            numbers.update(np.unique(values).tolist())
            are_grey = are_grey and is_grey
    if {2} <= numbers <= {1, 2, 3}:
        return "trimaps"
    if len(numbers) <= 2:
        return "binary"
    return "grey" if are_grey and len(numbers) >= _GREYS and max(numbers) == 255 else "labels"


def _things(values: Values, kind: str) -> Things:
    if kind == "labels":
        numbers, inverse = np.unique(values, return_inverse=True)
        if numbers.tolist() == [0, REST]:
            raise UnusablePictureError(f"mask of 0 and {REST} alone among masks of labels, where {REST} is no object")
        areas = np.bincount(inverse.ravel())
        areas[(numbers == 0) | (numbers == REST)] = 0
        largest = np.sort(np.argsort(-areas, kind="stable")[: min(_MOST_THINGS, np.count_nonzero(areas))])
        grey_of = np.where(numbers == 0, 0, REST).astype(np.uint8)
        grey_of[largest] = np.arange(1, len(largest) + 1)
        return Things(grey_of[inverse].reshape(values.shape), (None,) * len(largest))
    if kind == "trimaps":
        ground = values == 2
        edge = grown(ground, 1) & ~ground
        width = (values == 3).sum() / max(edge.sum(), 1)
        is_object = (values == 1) | ~grown(ground, round(float(width) / 2))
    else:
        is_object = values > 127 if kind == "grey" else values != 0
    return Things(is_object.astype(np.uint8), (None,))


def _annotated(path: Path, names: Sequence[str]) -> Marker:
    """The objects of COCO annotations, small ones above large ones."""
    images, annotations_of = annotated_pictures(path)
    number_of = _by_picture({str(image.get("file_name", "")): number for number, image in images.items()}, names)
    if not number_of:
        raise DataError(f"masks: no file_name in {path} is one of the pictures, such as {names[0]}")

    def read(number: int) -> Things:
        size = int(images[number]["height"]), int(images[number]["width"])
        drawn = [
            (category, bool(annotation.get("iscrowd")), segmentation(annotation.get("segmentation") or [], size))
            for category, annotation in annotations_of[number]
        ]
        drawn.sort(key=lambda thing: (not thing[1], -int(thing[2].sum())))  # crowds lie below all others
        things, categories, others = np.zeros(size, np.uint8), list[str | None](), set[str | None]()
        for category, is_crowd, mask in drawn:
            if is_crowd or len(categories) == _MOST_THINGS:
                things[mask] = REST
                others.add(category)
            else:
                categories.append(category)
                things[mask] = len(categories)
        return Things(things, categories, frozenset(others))

    return _looked_up(number_of, read, "no annotation")


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
