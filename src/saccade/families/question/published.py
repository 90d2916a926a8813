"""Readers of the published question data: CUB and Visual Genome.

CUB-200-2011: what colour is the crown? Body parts as queries, colours as answers, part clicks as evidence.

Wah, Branson, Welinder, Perona, Belongie, "The Caltech-UCSD Birds-200-2011 Dataset" (CNS-TR-2011-001), read in its
official layout: ``CUB_200_2011/``, and ``attributes.txt`` inside it or beside it.

* The answer is a fact about the species: the colour that the most people named for that part of it, where at least
  ``min_percent`` of them did (they could name several). Single birds differ, so some labels are wrong by nature.
* The evidence is the click on the part (the mean over the annotators); ``box`` is the whole bird, which a baseline may
  use. A part that is hidden in a picture is not asked about there, nor a wing where both show: one click is needed.
* Colours that are the answer for fewer than ``min_species`` species are left out; a model could only learn those birds.

``splits`` asks two different things. With ``pictures`` the species are known: train is the official training list
less a tenth of its pictures for val, test the official test list; a model may recall the species without looking at
the part. With ``species`` no bird of a species in test or val is ever in train: 125 / 25 / 50 of the 200, in the order
of a hash of their names.

Visual Genome: which attributes has the object asked for? Object classes as queries, attributes as labels.

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
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

from saccade.config import Within
from saccade.data.tables.cub_files import CubFiles
from saccade.data.tables.rows import Box, json_in
from saccade.data.tables.splits import hashed_share
from saccade.data.tables.table import Columns, Found, Row, Table, answers_in
from saccade.errors import ConfigError, DataError, nearest

COLUMNS = Columns(
    needed=("image", "label|labels"),
    optional=frozenset({"box", "point", "mask"}),
    labels=answers_in,
    asks=True,
    thing="question",
    word=("answer", "answers"),
    unknown="label",
)
"""A picture, what is asked about it, and one answer or several."""

PARTS: dict[str, tuple[str, ...]] = {
    "back": ("back",),
    "belly": ("belly",),
    "bill": ("beak",),
    "breast": ("breast",),
    "crown": ("crown",),
    "eye": ("left eye", "right eye"),
    "forehead": ("forehead",),
    "leg": ("left leg", "right leg"),
    "nape": ("nape",),
    "throat": ("throat",),
    "wing": ("left wing", "right wing"),
}
"""Parts that have a colour, by the name in its attributes, and the clicks that show them. The tail has a click but two
colours (above, below), so it cannot be asked about."""

_VAL_SPECIES, _TEST_SPECIES = 1 / 8, 1 / 4  # of all species


@dataclass(frozen=True)
class CubOptions:
    """Which questions about birds."""

    splits: Literal["pictures", "species"] = "pictures"
    """New pictures of known species, or unseen species."""
    min_percent: Annotated[float, Within(0, 100)] = 50.0
    """How many of the annotators must have named the colour."""
    min_species: int = 5
    """A colour that is the answer for fewer species is left out."""
    parts: tuple[str, ...] = ("back", "belly", "bill", "breast", "crown", "forehead", "nape", "throat", "wing")
    """Keys of ``PARTS``. Not asked by default: eyes, black for 191 of 200 species, and legs, mostly seen as a pair."""

    def __post_init__(self) -> None:
        for part in self.parts or ("",):
            if part not in PARTS:
                raise ConfigError(f"parts: found '{part}'; {nearest(part, PARTS)}")


def read_cub(path: Path, options: CubOptions) -> Table:
    """The questions about the birds in ``path``, the folder CUB_200_2011 or the one that holds it."""
    files = CubFiles(path)
    colours, reasons = _answers(files, options)
    split_of = files.split_by_picture() if options.splits == "pictures" else _split_by_species(files)
    found: list[Found] = []
    skipped: list[str] = []
    # Not in the order of the species, so that the first questions of a split are a fair sample of it.
    for number, name in sorted(files.images.items(), key=lambda item: hashed_share(item[1])):
        species = files.species_of[number]
        image = files.folder / "images" / name
        where = image.name
        if not image.is_file():
            skipped += [f"no such picture: {where}, {part}" for part in options.parts]
            continue
        for part in options.parts:
            clicks = [files.clicks[number, click] for click in PARTS[part] if (number, click) in files.clicks]
            if (species, part) not in colours:
                skipped.append(f"{reasons[species, part]}: {where}, {part}")
            elif len(clicks) != 1:
                skipped.append(f"{'both sides show' if clicks else 'not visible'}: {where}, {part}")
            else:
                row = Row(
                    image,
                    (colours[species, part],),
                    split_of[number],
                    query=part,
                    box=files.boxes[number],
                    point=clicks[0],
                    group=files.species[species],
                )
                found.append((where, row))
    return Table.of(f"cub:{path}", found, COLUMNS, skipped=skipped)


def _answers(files: CubFiles, options: CubOptions) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], str]]:
    """(species, part) → colour; and for the other pairs why there is none."""
    colours: dict[tuple[str, str], str] = {}
    reasons: dict[tuple[str, str], str] = {}
    for species in files.species:
        for part in options.parts:
            percent = files.percent[species, part]
            first, second = sorted(percent, key=lambda colour: -percent[colour])[:2]
            if percent[first] < options.min_percent or percent[first] == percent[second]:
                reasons[species, part] = "no colour named by enough people"
            else:
                colours[species, part] = first
    wearers: dict[str, set[str]] = defaultdict(set)
    for (species, _), colour in colours.items():
        wearers[colour].add(species)
    for key, colour in list(colours.items()):
        if len(wearers[colour]) < options.min_species:
            reasons[key] = f"'{colour}' is the answer for too few species"
            del colours[key]
    return colours, reasons


def _split_by_species(files: CubFiles) -> dict[str, str]:
    """Picture → split, all pictures of a species in the same."""
    order = sorted(files.species, key=lambda species: hashed_share(files.species[species]))
    tests, vals = round(len(order) * _TEST_SPECIES), round(len(order) * _VAL_SPECIES)
    split = {
        species: "test" if k < tests else "val" if k < tests + vals else "train" for k, species in enumerate(order)
    }
    return {number: split[species] for number, species in files.species_of.items()}


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


def read_visual_genome(path: Path, options: VisualGenomeOptions) -> Table:
    """The paper's questions about the images in ``path``, the folder of the official files."""
    there = {name: {file.name: file for file in (path / name).glob("*.jpg")} for name in _FOLDERS}
    if not any(there.values()):
        raise DataError(f"{path}: no pictures in {' or '.join(_FOLDERS)}; unpack images.zip and images2.zip there")
    try:
        entries = json_in(path / "image_data.json")
        pictures = {entry["image_id"]: _picture(there, entry["image_id"], entry.get("url", "")) for entry in entries}
        images = [
            (int(entry["image_id"]), [thing for each in entry["attributes"] if (thing := _thing(each)) is not None])
            for entry in json_in(path / "attributes.json")
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"{type(error).__name__}: {error}"
        raise DataError(f"{path}: not in the layout of version 1.2 ({said}); download the files again") from error
    classes = _frequent([thing.name for _, things in images for thing in things], "class", options, path)
    named = [attribute for _, things in images for thing in things for attribute in thing.attributes]
    attributes = _frequent(named, "attribute", options, path)
    by_image: dict[int, list[Row]] = {}
    skipped: list[str] = []
    for image, things in images:
        questions = _questions(things, classes, attributes)
        picture = pictures.get(image)
        if not questions:
            skipped.append(f"no frequent class with a frequent attribute: image {image}")
        elif picture is None:
            skipped += [f"no such picture: image {image}, {name}" for name in questions]
        else:
            by_image[image] = [
                Row(picture, labels, "", query=name, box=box) for name, (labels, box) in questions.items()
            ]
    order = sorted(by_image, key=lambda image: (hashed_share(str(image)), image))
    skipped += [f"more than the images asked for: image {image}" for image in order[options.images :]]
    order = order[: options.images]
    held_out = round(len(order) * _PAPER_HELD_OUT / _PAPER_IMAGES)
    found = []
    for place, image in enumerate(order):
        split = "test" if place < held_out else "val" if place < 2 * held_out else "train"
        found += [(f"image {image}", replace(row, split=split)) for row in by_image[image]]
    return Table.of(f"vg:{path}", found, COLUMNS, skipped=skipped, several=True)


def _picture(there: dict[str, dict[str, Path]], number: int, url: str) -> Path | None:
    """The picture of an image: where its address says (…/VG_100K_2/NUMBER.jpg), else by its number."""
    address = PurePosixPath(url)
    named = there.get(address.parent.name, {}).get(address.name)
    return next((each for each in (named, *(there[name].get(f"{number}.jpg") for name in _FOLDERS)) if each), None)


def _thing(entry: dict[str, Any]) -> _Thing | None:
    attributes = dict.fromkeys(word for text in entry.get("attributes") or () if (word := text.strip().lower()))
    name = next((word for text in entry["names"] if (word := text.strip().lower())), "")
    x, y, width, height = (float(entry[side]) for side in "xywh")
    if not name or not attributes or width <= 0 or height <= 0:
        return None
    return _Thing(name, tuple(attributes), (x, y, x + width, y + height))


def _frequent(words: list[str], what: str, options: VisualGenomeOptions, path: Path) -> set[str]:
    """Those of ``words`` that appear more than ``min_count`` times."""
    frequent = {word for word, count in Counter(words).items() if count > options.min_count}
    if not frequent:
        raise DataError(
            f"{path}: no {what} appears more than {options.min_count} times; set data.options.min_count to a smaller "
            "number"
        )
    return frequent


def _questions(things: list[_Thing], classes: set[str], attributes: set[str]) -> dict[str, tuple[tuple[str, ...], Box]]:
    """Class → (its attributes in this image, the box around its objects), frequent ones only."""
    found: dict[str, tuple[tuple[str, ...], Box]] = {}
    for thing in things:
        labels = tuple(attribute for attribute in thing.attributes if attribute in attributes)
        if thing.name in classes and labels:
            before, one = found.get(thing.name, ((), thing.box))
            two = thing.box
            around = (min(one[0], two[0]), min(one[1], two[1]), max(one[2], two[2]), max(one[3], two[3]))
            found[thing.name] = tuple(dict.fromkeys((*before, *labels))), around
    return found
