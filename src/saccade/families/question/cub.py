"""CUB-200-2011: what colour is the crown? Body parts as queries, colours as answers, part clicks as evidence.

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
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

from saccade.data.tables.splits import hashed_share
from saccade.errors import ConfigError, DataError, nearest
from saccade.families.question.table import Question, QuestionTable, make_table

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

T = TypeVar("T")

_VAL_OF_TRAIN = 0.1
_VAL_SPECIES, _TEST_SPECIES = 1 / 8, 1 / 4  # of all species


@dataclass(frozen=True)
class CubOptions:
    """Which questions about birds."""

    splits: Literal["pictures", "species"] = "pictures"
    """New pictures of known species, or unseen species."""
    min_percent: float = 50.0
    """How many of the annotators must have named the colour."""
    min_species: int = 5
    """A colour that is the answer for fewer species is left out."""
    parts: tuple[str, ...] = ("back", "belly", "bill", "breast", "crown", "forehead", "nape", "throat", "wing")
    """Keys of ``PARTS``. Not asked by default: eyes, black for 191 of 200 species, and legs, mostly seen as a pair."""

    def __post_init__(self) -> None:
        for part in self.parts:
            if part not in PARTS:
                raise ConfigError(f"parts: found '{part}'; {nearest(part, PARTS)}")
        if not self.parts:
            raise ConfigError(f"parts: none named; {nearest('', PARTS)}")
        if not 0 <= self.min_percent <= 100:
            raise ConfigError(f"min_percent: must lie in 0 .. 100, found {self.min_percent}")


def read_cub(path: Path, options: CubOptions) -> QuestionTable:
    """The questions about the birds in ``path``, the folder CUB_200_2011 or the one that holds it."""
    files = _CubFiles(path)
    colours, reasons = _answers(files, options)
    split_of = _split_by_picture(files) if options.splits == "pictures" else _split_by_species(files)
    found: list[tuple[str, Question]] = []
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
                question = Question(
                    image,
                    part,
                    (colours[species, part],),
                    split_of[number],
                    files.boxes[number],
                    clicks[0],
                    group=files.species[species],
                )
                found.append((where, question))
    return make_table(f"cub:{path}", found, skipped, multi_label=False)


def _answers(files: _CubFiles, options: CubOptions) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], str]]:
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


def _split_by_picture(files: _CubFiles) -> dict[str, str]:
    """Picture → split, from the official lists."""
    return {
        number: "test" if not files.is_train[number] else "val" if hashed_share(name) < _VAL_OF_TRAIN else "train"
        for number, name in files.images.items()
    }


def _split_by_species(files: _CubFiles) -> dict[str, str]:
    """Picture → split, all pictures of a species in the same."""
    order = sorted(files.species, key=lambda species: hashed_share(files.species[species]))
    tests, vals = round(len(order) * _TEST_SPECIES), round(len(order) * _VAL_SPECIES)
    split = {
        species: "test" if k < tests else "val" if k < tests + vals else "train" for k, species in enumerate(order)
    }
    return {number: split[species] for number, species in files.species_of.items()}


class _CubFiles:
    """The text files of the data set, each read when it is asked for; numbers stay the text they are."""

    def __init__(self, path: Path) -> None:
        places = (path, path / "CUB_200_2011")
        found = next((place for place in places if (place / "images.txt").is_file()), None)
        if found is None:
            raise DataError(f"{path}: no images.txt here or in CUB_200_2011; name the folder that was unpacked")
        self.folder = found

    @cached_property
    def images(self) -> dict[str, str]:
        """Picture → its file below images/."""
        return dict(self._lines("images.txt", 2))

    @cached_property
    def species(self) -> dict[str, str]:
        """Species → its name."""
        return dict(self._lines("classes.txt", 2))

    @cached_property
    def species_of(self) -> dict[str, str]:
        """Picture → species."""
        return self._for_every_picture("image_class_labels.txt", dict(self._lines("image_class_labels.txt", 2)))

    @cached_property
    def is_train(self) -> dict[str, bool]:
        """Picture → whether it is on the official training list."""
        marks = {number: mark == "1" for number, mark in self._lines("train_test_split.txt", 2)}
        return self._for_every_picture("train_test_split.txt", marks)

    @cached_property
    def boxes(self) -> dict[str, tuple[float, float, float, float]]:
        """Picture → box of the bird, xyxy."""
        boxes = {}
        for number, *numbers in self._lines("bounding_boxes.txt", 5):
            x, y, width, height = self._floats("bounding_boxes.txt", numbers)
            boxes[number] = (x, y, x + width, y + height)
        return self._for_every_picture("bounding_boxes.txt", boxes)

    @cached_property
    def clicks(self) -> dict[tuple[str, str], tuple[float, float]]:
        """(picture, part as in parts.txt) → where it was clicked, visible parts only."""
        parts = {number: name for number, name in self._lines("parts/parts.txt", 2)}
        clicks = {}
        for number, part, *numbers in self._lines("parts/part_locs.txt", 5):
            x, y, visible = self._floats("parts/part_locs.txt", numbers)
            if visible and part in parts:
                clicks[number, parts[part]] = (x, y)
        return clicks

    @cached_property
    def percent(self) -> dict[tuple[str, str], dict[str, float]]:
        """(species, part) → how many percent of the annotators named each colour."""
        attributes = [name for _, name in self._lines(self._attribute_names(), 2)]
        table = "attributes/class_attribute_labels_continuous.txt"
        rows = list(self._lines(table, len(attributes)))
        if len(rows) != len(self.species):
            raise DataError(
                f"{self.folder / table}: {len(rows)} lines for {len(self.species)} species; unpack it again"
            )
        percent: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for species, numbers in zip(self.species, rows):
            for attribute, value in zip(attributes, self._floats(table, numbers)):
                kind, _, colour = attribute.partition("::")
                if kind.startswith("has_") and kind.endswith("_color"):
                    percent[species, kind[len("has_") : -len("_color")]][colour] = value
        return dict(percent)

    def _attribute_names(self) -> str:
        places = ("attributes/attributes.txt", "attributes.txt", "../attributes.txt")
        found = next((place for place in places if (self.folder / place).is_file()), None)
        if found is None:
            raise DataError(f"{self.folder}: no attributes.txt in it, in attributes/ or beside it; unpack it too")
        return found

    def _for_every_picture(self, file: str, values: dict[str, T]) -> dict[str, T]:
        missing = [number for number in self.images if number not in values]
        if missing:
            raise DataError(f"{self.folder / file}: nothing about {len(missing)} pictures, the first is {missing[0]}")
        return values

    def _lines(self, file: str, cells: int) -> Iterator[list[str]]:
        """The cells of every line, split at spaces; the last one may hold more."""
        path = self.folder / file
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: cannot be read ({error}); unpack the data set again") from error
        for number, line in enumerate(text.splitlines(), start=1):
            found = line.split(maxsplit=cells - 1)
            if len(found) != cells:
                raise DataError(f"{path}: line {number} has {len(found)} cells, expected {cells}; unpack it again")
            yield [cell.strip() for cell in found]

    def _floats(self, file: str, cells: list[str]) -> list[float]:
        try:
            return [float(cell) for cell in cells]
        except ValueError as error:
            raise DataError(f"{self.folder / file}: {error}; unpack the data set again") from error
