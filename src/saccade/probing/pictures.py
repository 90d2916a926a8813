"""The pictures of a probe: which can be used, what they are called, which belong together, and their features.

What cannot be used is left out, counted and named: files that cannot be read, and classes with too few pictures to
learn from, to choose with and to be tested on.

Axes: N pictures, C channels, H and W cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from saccade.data.pictures.label_evidence import LabelEvidence
from saccade.data.pictures.near_copies import copy_groups
from saccade.data.pictures.prepared import PreparedPictures
from saccade.data.tables.doubts import spellings
from saccade.data.tables.labelled import LabelTable
from saccade.data.tables.wording import counted, first_few, summarised
from saccade.errors import DataError
from saccade.geometry import Size
from saccade.models.base import ImageModel
from saccade.models.probe import standardised
from saccade.probing.folds import LEAST_GROUPS, groups_of_class
from saccade.tasks.kept_features import KeptFeatures

MOST_CLASSES = 2_000
"""Classes that a probe compares at most: each rival has a row of weights for each of them, many times over."""
RESIDENT = 2 << 30
"""Bytes of features that are kept in memory; of more, batches are read from disk."""
DECODED = 2 << 30
"""Bytes of decoded pictures that are kept in memory."""
_NAMED = 5
_UNSEEN = "label never seen in train"
"""Rows that the reader leaves out by its own splits; a probe makes others and can use them."""

Tell = Callable[[str, int, int], None]
"""Called with what is going on, how far it is, and how far it goes."""


@dataclass(frozen=True)
class ProbedPictures:
    """Pictures that a probe can use."""

    paths: tuple[Path, ...]
    labels: Tensor
    """(N,) the number of each picture's class."""
    classes: tuple[str, ...]
    groups: tuple[int, ...]
    """Of each picture: pictures with the same number belong together."""
    store: PreparedPictures
    places: Tensor
    """(N,) where each picture is in the store."""
    remarks: tuple[str, ...]
    """What was left out, and what else is to be known, in words."""
    copies: tuple[tuple[str, str], ...]
    """Near-copies: a picture and the first one that it looks like."""
    evidence: LabelEvidence | None = None
    """Where labels can be seen, by place in the store; None where the data does not say."""

    def __len__(self) -> int:
        return len(self.paths)

    def images(self, numbers: Tensor) -> Tensor:
        """Pictures by number, as the network sees them: (B,3,H,W)."""
        return self.store.take(self.places[numbers])

    def evidence_of(self, numbers: Tensor) -> Tensor | None:
        """The evidence (B,H,W) bool of pictures by number; None where the data has none."""
        return None if self.evidence is None else self.evidence.take(self.places[numbers])


def usable_pictures(table: LabelTable, size: Size, tell: Tell) -> ProbedPictures:
    """The pictures of ``table`` that a probe can use; its own splits are put together.

    Raises:
        DataError: fewer than two classes can be compared, or too many.
    """
    rows = table.as_found or table.rows
    words = sorted({row.label for row in rows})
    if len(words) > MOST_CLASSES:
        raise DataError(
            f"{table.name}: {len(words):,} classes; a probe compares {MOST_CLASSES:,} at most: name a part of the data"
        )
    remarks = []
    skipped = [entry for entry in table.skipped if not entry.startswith(_UNSEEN)]
    if skipped:
        remarks.append(f"left out when {table.name} was read: {summarised(skipped)}")
    if spelt := spellings(words, "labels"):
        remarks.append(spelt)
    store = PreparedPictures(
        [row.image for row in rows],
        size,
        torch.device("cpu"),
        limit=DECODED,
        progress=lambda done, total: tell("pictures", done, total),
    )
    if store.unreadable:
        broken = [rows[number].image.name for number in sorted(store.unreadable)]
        remarks.append(f"{counted(len(broken), 'picture')} cannot be read: {first_few(broken, _NAMED)}")
    evidence = LabelEvidence(rows, store, torch.device("cpu"), limit=DECODED)
    if evidence.wrong:
        remarks.append(f"evidence that cannot be used: {summarised([*evidence.wrong.values()])}")
    readable = [number for number in range(len(rows)) if number not in store.unreadable]
    found = copy_groups([rows[number].image for number in readable], tell)
    remarks += [found.unsearched] if found.unsearched else []
    number_of = {word: number for number, word in enumerate(words)}
    labels = [number_of[rows[number].label] for number in readable]
    groups = together([rows[number].group for number in readable], found.group)
    if named := {rows[number].group for number in readable} - {""}:
        remarks.append(
            f"{counted(len(named), 'group')} of pictures that belong together, by the column 'group': each stays on "
            "one side of every split"
        )
    held = groups_of_class(labels, groups)
    few = [words[label] for label in range(len(words)) if held[label] < LEAST_GROUPS]
    if few:
        remarks.append(
            f"{counted(len(few), 'class', 'classes')} left out with fewer than {LEAST_GROUPS} different "
            f"{'groups' if named else 'pictures'}: {first_few(few, _NAMED)}"
        )
    classes = tuple(sorted({*words} - {*few}))
    place_of = {word: number for number, word in enumerate(classes)}
    if len(classes) < 2:
        raise DataError(
            f"{table.name}: {counted(len(classes), 'class', 'classes')} with {LEAST_GROUPS} different pictures or more;"
            f" a probe needs two of them: add pictures{''.join(f'; {each}' for each in remarks)}"
        )
    kept = [place for place, label in enumerate(labels) if words[label] in place_of]
    names = [rows[readable[place]].image for place in kept]
    alike = [found.group[place] for place in kept]
    name_of = {place: rows[readable[place]].image.name for place in range(len(readable))}
    return ProbedPictures(
        paths=tuple(names),
        labels=torch.tensor([place_of[words[labels[place]]] for place in kept]),
        classes=classes,
        groups=tuple(groups[place] for place in kept),
        store=store,
        places=torch.tensor([readable[place] for place in kept]),
        remarks=tuple(remarks),
        copies=tuple((name_of[place], name_of[first]) for place, first in zip(kept, alike) if place != first),
        evidence=evidence if evidence.is_there else None,
    )


def together(named: Sequence[str], alike: Sequence[int]) -> list[int]:
    """The group of each picture: pictures of one name, and those that look alike, are in one; (N,) numbers.

    Args:
        named: the group that the data names for each picture; "" where it names none.
        alike: number of the first picture that each one looks like; its own where there is none.
    """
    first_of: dict[str, int] = {}
    parent = [*range(len(named))]

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    for number, (name, other) in enumerate(zip(named, alike)):
        for friend in (other, first_of.setdefault(name, number) if name else number):
            low, high = sorted((root(number), root(friend)))
            parent[high] = low
    return [root(number) for number in range(len(named))]


class Features:
    """What a frozen backbone makes of the pictures, by number.

    Args:
        read: numbers (B,) → features (B,C,H,W).
        count: how many pictures there are.
    """

    def __init__(self, read: Callable[[Tensor], Tensor], count: int) -> None:
        self.shape: tuple[int, ...] = tuple(read(torch.tensor([0])).shape[1:])
        """(C,H,W)."""
        each = 4 * self.shape[0] * self.shape[1] * self.shape[2]
        self._read = read
        self._held: Tensor | None = None
        parts = torch.split(torch.arange(count), 256)
        if each * count <= RESIDENT:
            self._held = torch.cat([_channels_together(read(part)) for part in parts])
        self.pooled = torch.cat([self.take(part).flatten(2).mean(-1) for part in parts])
        """(N,C): the mean of all cells."""

    def take(self, numbers: Tensor) -> Tensor:
        """The features (B,C,H,W) of pictures, channels together in memory."""
        return self._held[numbers] if self._held is not None else _channels_together(self._read(numbers))

    def statistics(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (C,) of each channel over all cells of the pictures ``numbers``."""
        total, squares, cells = torch.zeros(self.shape[0]).double(), torch.zeros(self.shape[0]).double(), 0
        for part in torch.split(numbers, 256):
            values = self.take(part).permute(0, 2, 3, 1).flatten(0, 2).double()  # (n,C)
            total += values.sum(0)
            squares += values.square().sum(0)
            cells += len(values)
        centre = total / cells
        spread = (squares / cells - centre.square()).clamp_min(0).sqrt()
        return centre.float(), spread.clamp_min(1e-3 * float(spread.max().clamp_min(1e-6))).float()

    def batches(self, centre: Tensor, spread: Tensor) -> Callable[[Tensor], Tensor]:
        """Numbers (B,) → standardised features (B,C,H,W)."""
        return lambda numbers: standardised(self.take(numbers), centre, spread)

    def pooled_batches(self, centre: Tensor, spread: Tensor) -> Callable[[Tensor], Tensor]:
        """Numbers (B,) → the standardised means of all cells, as maps of one cell (B,C,1,1)."""
        values = standardised(self.pooled[:, :, None, None], centre, spread)
        return lambda numbers: values[numbers]


def features_of(pictures: ProbedPictures, model: ImageModel, *, limit_mb: int, tell: Tell) -> Features:
    """The features of ``pictures``, computed once and kept in the cache folder."""
    kept = KeptFeatures(pictures.paths, pictures.images, model, limit_mb=limit_mb, tell=tell)
    return Features(kept.take, len(pictures))


def _channels_together(features: Tensor) -> Tensor:
    return features.contiguous(memory_format=torch.channels_last)
