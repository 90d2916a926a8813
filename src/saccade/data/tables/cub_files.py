"""The text files of CUB-200-2011 in their official layout, for every reader of it.

Wah, Branson, Welinder, Perona, Belongie, "The Caltech-UCSD Birds-200-2011 Dataset" (CNS-TR-2011-001):
``CUB_200_2011/``, and ``attributes.txt`` inside it or beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from saccade.data.examples import hashed_share
from saccade.errors import DataError

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
