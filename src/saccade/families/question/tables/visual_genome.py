"""Visual Genome: which attributes has the object asked for? Object classes as queries, attributes as labels.

Krishna et al., "Visual Genome" (arXiv:1602.07332), read from the official files: ``image_data.json``,
``attributes.json`` (version 1.2: a list of ``{image_id, attributes: [{object_id, names, attributes, x, y, w, h}]}``),
and the pictures in ``VG_100K`` and ``VG_100K_2``.

The task is that of Seo et al. (arXiv:1606.02393, §5.2): 488 classes and 274 attributes that appear more than 100 times,
45,393 images with 255,118 labels, 25,393 / 10,000 / 10,000 of them for train / val / test. What the paper leaves open:

* An object is named by its first name; names and attributes are compared in lower case, without outer spaces. An
  attribute appears once for each object that has it, a class once for each object of it that has any attribute; both
  are counted over the whole file, before anything is left out.
* One question for each class in an image. Where several objects of a class are in it the labels are those of all of
  them, and the box is the smallest around all of them.
* Images are taken in the order of a hash of their numbers until there are ``images`` of them; val and test have
  10,000 / 45,393 each. The release, and so the counts, may differ from the authors', which they do not name.

The attributes are some 460 MB of JSON: they are read twice, image by image, and never held as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from saccade.data.tables.json_stream import list_elements
from saccade.data.tables.splits import hashed_share
from saccade.errors import ConfigError, DataError
from saccade.families.question.table import Question, QuestionTable, make_table

Box = tuple[float, float, float, float]

_PAPER_IMAGES, _PAPER_HELD_OUT = 45_393, 10_000
_FOLDERS = ("VG_100K", "VG_100K_2")


@dataclass(frozen=True)
class VisualGenomeOptions:
    """Which questions about Visual Genome."""

    min_count: int = 100
    """Classes and attributes must appear more often than this."""
    images: int = _PAPER_IMAGES
    """Images used at most."""

    def __post_init__(self) -> None:
        if self.min_count < 0 or self.images < 3:
            raise ConfigError(
                f"min_count must be at least 0 and images at least 3, found {self.min_count} and {self.images}"
            )


class _Thing(NamedTuple):
    """One object of an image that has attributes."""

    name: str
    attributes: tuple[str, ...]
    box: Box


def read_visual_genome(path: Path, options: VisualGenomeOptions) -> QuestionTable:
    """The paper's questions about the images in ``path``, the folder of the official files."""
    pictures = _pictures(path)
    classes, attributes = _frequent(path / "attributes.json", options.min_count)
    by_image: dict[int, list[Question]] = {}
    skipped: list[str] = []
    for image, things in _images(path / "attributes.json"):
        questions = _questions(things, classes, attributes)
        picture = pictures.get(image)
        if not questions:
            skipped.append(f"no frequent class with a frequent attribute: image {image}")
        elif picture is None:
            skipped += [f"no such picture: image {image}, {name}" for name in questions]
        else:
            by_image[image] = [
                Question(picture, name, labels, "", box, group=str(image)) for name, (labels, box) in questions.items()
            ]
    order = sorted(by_image, key=lambda image: (hashed_share(str(image)), image))
    skipped += [f"more than the images asked for: image {image}" for image in order[options.images :]]
    found = _with_splits(by_image, order[: options.images])
    return make_table(f"vg:{path}", found, skipped, multi_label=True)


def _with_splits(by_image: dict[int, list[Question]], order: list[int]) -> list[tuple[str, Question]]:
    """The questions of the images in ``order``, with their splits: test and val come first."""
    held_out = round(len(order) * _PAPER_HELD_OUT / _PAPER_IMAGES)
    found = []
    for place, image in enumerate(order):
        split = "test" if place < held_out else "val" if place < 2 * held_out else "train"
        found += [(f"image {image}", replace(question, split=split)) for question in by_image[image]]
    return found


def _questions(things: list[_Thing], classes: set[str], attributes: set[str]) -> dict[str, tuple[tuple[str, ...], Box]]:
    """Class → (its attributes in this image, the box around its objects), frequent ones only."""
    found: dict[str, tuple[tuple[str, ...], Box]] = {}
    for thing in things:
        labels = tuple(attribute for attribute in thing.attributes if attribute in attributes)
        if thing.name in classes and labels:
            before, box = found.get(thing.name, ((), thing.box))
            found[thing.name] = tuple(dict.fromkeys((*before, *labels))), _around(box, thing.box)
    return found


def _around(one: Box, other: Box) -> Box:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _frequent(path: Path, min_count: int) -> tuple[set[str], set[str]]:
    """Classes and attributes that appear more than ``min_count`` times."""
    classes: Counter[str] = Counter()
    attributes: Counter[str] = Counter()
    for _, things in _images(path):
        for thing in things:
            classes[thing.name] += 1
            attributes.update(thing.attributes)
    frequent = [{word for word, count in counts.items() if count > min_count} for counts in (classes, attributes)]
    if not all(frequent):
        raise DataError(
            f"{path}: no {'class' if not frequent[0] else 'attribute'} appears more than {min_count} times; "
            "set data.options.min_count to a smaller number"
        )
    return frequent[0], frequent[1]


def _pictures(path: Path) -> dict[int, Path]:
    """Image number → its picture, of those that are there."""
    if not path.is_dir():
        raise DataError(f"{path}: not a folder; name the one with image_data.json and attributes.json")
    there = {name: {file.name: file for file in (path / name).glob("*.jpg")} for name in _FOLDERS}
    if not any(there.values()):
        raise DataError(f"{path}: no pictures in {' or '.join(_FOLDERS)}; unpack images.zip and images2.zip there")
    pictures = {}
    for entry in list_elements(path / "image_data.json"):
        number = _image_number(entry, path / "image_data.json")
        address = PurePosixPath(str(entry.get("url", "")))  # …/VG_100K_2/NUMBER.jpg
        named = there.get(address.parent.name, {}).get(address.name)
        candidates = (named, *(there[name].get(f"{number}.jpg") for name in _FOLDERS))
        picture = next((candidate for candidate in candidates if candidate is not None), None)
        if picture is not None:
            pictures[number] = picture
    return pictures


def _images(path: Path) -> Iterator[tuple[int, list[_Thing]]]:
    """Each image of attributes.json with its objects that have attributes."""
    for entry in list_elements(path):
        number = _image_number(entry, path)
        try:
            yield number, [thing for each in entry["attributes"] if (thing := _thing(each)) is not None]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{path}: image {number} is not in the layout of version 1.2 ({type(error).__name__}: {error}); "
                "download attributes.json again"
            ) from error


def _thing(entry: dict[str, Any]) -> _Thing | None:
    attributes = dict.fromkeys(word for text in entry.get("attributes") or () if (word := text.strip().lower()))
    name = next((word for text in entry["names"] if (word := text.strip().lower())), "")
    x, y, width, height = (float(entry[side]) for side in "xywh")
    if not name or not attributes or width <= 0 or height <= 0:
        return None
    return _Thing(name, tuple(attributes), (x, y, x + width, y + height))


def _image_number(entry: object, path: Path) -> int:
    if not isinstance(entry, dict) or not isinstance(entry.get("image_id"), int):
        raise DataError(f"{path}: an entry has no image_id; this reader takes the files of version 1.2")
    return int(entry["image_id"])
