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
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from saccade.config import Within
from saccade.data.tables.cub_files import CubFiles
from saccade.data.tables.splits import hashed_share
from saccade.errors import ConfigError, nearest
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


def read_cub(path: Path, options: CubOptions) -> QuestionTable:
    """The questions about the birds in ``path``, the folder CUB_200_2011 or the one that holds it."""
    files = CubFiles(path)
    colours, reasons = _answers(files, options)
    split_of = files.split_by_picture() if options.splits == "pictures" else _split_by_species(files)
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
