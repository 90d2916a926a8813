"""The pictures of a probe: which can be used, what they are called, which belong together, and their features.

What cannot be used is left out, counted and named: files that cannot be read, and classes with too few pictures to
learn from, to choose with and to be tested on.

Axes: N pictures, C channels, H and W cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from saccade.backbones.feature_folder import FeatureFolder
from saccade.backbones.levels import Level, folded, levels_of
from saccade.backbones.stages import Stages
from saccade.data.pictures.label_evidence import LabelEvidence
from saccade.data.pictures.near_copies import copy_groups
from saccade.data.pictures.prepared import PreparedPictures
from saccade.data.tables.doubts import spellings
from saccade.data.tables.labelled import LabelTable
from saccade.data.tables.wording import counted, first_few, summarised
from saccade.errors import ConfigError, DataError
from saccade.geometry import Size
from saccade.models.base import ImageModel
from saccade.models.probe import standardised
from saccade.models.probe_heads import PYRAMID
from saccade.probing.folds import LEAST_GROUPS, groups_of_class
from saccade.tasks.kept_features import KeptFeatures

MOST_CLASSES = 2_000
"""Classes that a probe compares at most: each rival has a row of weights for each of them, many times over."""
RESIDENT = 2 << 30
"""Bytes of features that are kept in memory; of more, batches are read from disk."""
STANDARDISED = 1 << 30
"""Bytes of standardised features that a rival keeps in memory."""
DECODED = 2 << 30
"""Bytes of decoded pictures that are kept in memory."""
_NAMED = 5
_UNSEEN = "label never seen in train"
"""Rows that the reader leaves out by its own splits; a probe makes others and can use them."""

Tell = Callable[[str, int, int], None]
"""Called with what is going on, how far it is, and how far it goes."""
Batch = Callable[[Tensor], Tensor]
"""Numbers of pictures (B,) → features (B,C,H,W)."""


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
    folder: FeatureFolder | None = None
    """Whose maps stand in for a network, if any."""

    def __len__(self) -> int:
        return len(self.paths)

    def images(self, numbers: Tensor) -> Tensor:
        """Pictures by number, as the network sees them: (B,3,H,W)."""
        return self.store.take(self.places[numbers])

    def evidence_of(self, numbers: Tensor) -> Tensor | None:
        """The evidence (B,H,W) bool of pictures by number; None where the data has none."""
        return None if self.evidence is None else self.evidence.take(self.places[numbers])

    def canvas(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Of each picture the way from the network input to it (B,2,3), and its height and width (B,2)."""
        place = self.places[numbers]
        size = self.store.image_size[place]
        return self.store.canvas[place] if self.folder is None else self.folder.canvas(size), size


def with_maps(table: LabelTable, folder: FeatureFolder) -> tuple[LabelTable, str]:
    """The rows of ``table`` whose pictures have a map in ``folder``, and a remark on the others.

    Raises:
        DataError: no picture has one, or two have the same.
    """
    rows = table.as_found or table.rows
    kept = tuple(row for row in rows if folder.file_of(row.image) is not None)
    if not kept:
        raise DataError(
            f"{folder.folder}: no map has the name of a picture of {table.name}, such as {rows[0].image.stem}"
        )
    folder.check_apart([row.image for row in kept])
    lost = [row.image.name for row in rows if folder.file_of(row.image) is None]
    said = f"{counted(len(lost), 'picture')} left out without a map: {first_few(lost, _NAMED)}" if lost else ""
    return replace(table, rows=kept, as_found=kept), said


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


class View:
    """What one kind of rival reads of the pictures, by number.

    Args:
        take: numbers (B,) → features (B,C,H,W).
        shape: (C,H,W).
        cells: numbers (B,) → the features that statistics are from; None: those of ``take``.
        held: whether ``take`` is from memory, so that all of them may be standardised at once.
        count: how many pictures there are.
    """

    def __init__(
        self, take: Batch, shape: tuple[int, ...], count: int, *, cells: Batch | None = None, held: bool = True
    ) -> None:
        self.take, self.shape, self._count = take, shape, count
        self._cells = cells or take
        self._is_held = held and 4 * count * shape[0] * shape[1] * shape[2] <= STANDARDISED
        self._known: dict[bytes, tuple[Tensor, Tensor]] = {}

    def statistics(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (C,) of each channel over all cells of the pictures ``numbers``."""
        key = numbers.numpy().tobytes()
        if key not in self._known:
            self._known[key] = self._counted(numbers)
        return self._known[key]

    def _counted(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        total, squares, cells = torch.zeros(self.shape[0]).double(), torch.zeros(self.shape[0]).double(), 0
        for part in torch.split(numbers, 64):
            values = self._cells(part).permute(0, 2, 3, 1).flatten(0, 2).double()  # (n,C)
            total += values.sum(0)
            squares += values.square().sum(0)
            cells += len(values)
        centre = total / cells
        spread = (squares / cells - centre.square()).clamp_min(0).sqrt()
        return centre.float(), spread.clamp_min(1e-3 * float(spread.max().clamp_min(1e-6))).float()

    def batches(self, centre: Tensor, spread: Tensor) -> Batch:
        """Numbers (B,) → standardised features (B,C,H,W).

        Where they fit into memory they are standardised once: to do it in every step took as long as a small head.
        """
        if not self._is_held:
            return lambda numbers: standardised(self.take(numbers), centre, spread)
        parts = torch.split(torch.arange(self._count), 64)
        made = torch.cat([channels_together(standardised(self.take(part), centre, spread)) for part in parts])
        return lambda numbers: made[numbers]


class Features:
    """What a frozen backbone makes of the pictures, by number.

    Args:
        read: numbers (B,) → features (B,C,H,W); with ``token`` (B,C,H+1,W), a class token in the first cell of the
            last row.
        count: how many pictures there are.
        token: whether there is a class token.
        folded: numbers (B,) → finer maps of other stages, folded onto the same cells (B,C',H,W); None: there are none.
        levels: the maps of a pyramid, the finest first and that of ``read`` last.
    """

    def __init__(
        self,
        read: Batch,
        count: int,
        *,
        token: bool = False,
        folded: Batch | None = None,
        levels: Sequence[Level] = (),
    ) -> None:
        self._read, self._has_token = read, token
        self._main = _Held(read, count)
        channels, height, width = self._main.shape
        self.shape: tuple[int, ...] = (channels, height - token, width)
        """(C,H,W)."""
        self.levels = tuple(levels)
        parts = torch.split(torch.arange(count), 256)
        self.pooled = torch.cat([self.take(part).flatten(2).mean(-1) for part in parts])
        """(N,C): the mean of all cells."""
        held = self._main.is_held
        self.map = View(self.take, self.shape, count, held=held)
        self.mean = View(
            lambda numbers: self.pooled[numbers][..., None, None], (channels, 1, 1), count, cells=self.take
        )
        """The mean of standardised cells is the standardised mean: a linear head needs one cell."""
        self.token: View | None = None
        """The class token as a map of one cell."""
        if token:
            tokens = torch.cat([self._main.take(part)[:, :, -1:, :1] for part in parts])  # (N,C,1,1)
            self.token = View(lambda numbers: tokens[numbers], (channels, 1, 1), count)
        self.pyramid: View | None = None
        """All maps of the pyramid, folded into one."""
        if folded is not None:
            finer = _Held(folded, count)
            self.pyramid = View(
                lambda numbers: torch.cat([finer.take(numbers), self.take(numbers)], 1),
                (finer.shape[0] + channels, height - token, width),
                count,
                held=held and finer.is_held,
            )

    def take(self, numbers: Tensor) -> Tensor:
        """The last maps (B,C,H,W) of pictures, channels together in memory."""
        found = self._main.take(numbers)
        return channels_together(found[:, :, :-1]) if self._has_token else found

    def statistics(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (C,) of each channel of the last map."""
        return self.map.statistics(numbers)

    def encoded(self, head: str, numbers: Tensor) -> Tensor:
        """What a model with that head has encoded of pictures: (B,C,H,W)."""
        view = self.pyramid if head == PYRAMID else self.map
        if view is None:
            raise ConfigError("heads: pyramid: these features are of one stage")
        return view.take(numbers)


class _Held:
    """Features in memory where they fit; else read again and again."""

    def __init__(self, read: Batch, count: int) -> None:
        self._read = read
        self._all: Tensor | None = None
        self.shape: tuple[int, ...] = tuple(read(torch.tensor([0])).shape[1:])
        self.is_held = 4 * count * self.shape[0] * self.shape[1] * self.shape[2] <= RESIDENT
        if self.is_held:
            parts = torch.split(torch.arange(count), 64)
            self._all = torch.cat([channels_together(read(part)) for part in parts])

    def take(self, numbers: Tensor) -> Tensor:
        """(B,C,H,W), channels together in memory."""
        return self._all[numbers] if self._all is not None else channels_together(self._read(numbers))


def features_of(
    pictures: ProbedPictures, model: ImageModel, finer: Sequence[str], *, limit_mb: int, tell: Tell
) -> Features:
    """The features of ``pictures``, computed once and kept in the cache folder.

    Args:
        pictures: what is probed.
        model: whose backbone sees them.
        finer: stages of the pyramid beside the last; none: there is no pyramid.
        limit_mb: what kept features may take on disk.
        tell: called with what is going on, how far it is, and how far it goes.
    """
    stages = model.encoder
    if stages is None:
        raise ConfigError(f"features are kept of a backbone alone; {type(model).__name__} has none")
    token = stages.has_class_token
    seen = _Seen(model, stages, stages.with_class_token if token else stages, "" if not token else "+class token")
    main = KeptFeatures(pictures.paths, pictures.images, seen, limit_mb=limit_mb, what=seen.what, tell=tell)
    if not finer:
        return Features(main.take, len(pictures), token=token)
    levels = levels_of(stages, finer)
    below = _Seen(
        model, stages, lambda images: folded(stages, images, levels, finer_only=True), f" folded {' '.join(finer)}"
    )
    kept = KeptFeatures(pictures.paths, pictures.images, below, limit_mb=limit_mb, what=below.what, tell=tell)
    return Features(main.take, len(pictures), token=token, folded=kept.take, levels=levels)


def folder_features(pictures: ProbedPictures, folder: FeatureFolder) -> Features:
    """The maps that ``folder`` has of the pictures."""
    paths = pictures.paths
    return Features(
        lambda numbers: folder.take([paths[number] for number in numbers.tolist()]),
        len(pictures),
        token=folder.has_class_token,
    )


class _Seen:
    """A backbone as a model that keeps something of it."""

    def __init__(self, model: ImageModel, stages: Stages, encode: Batch, what: str) -> None:
        self.config, self.encoder, self.encode = model.config, stages, encode
        self.what = f"{stages.names[-1]}{what}"


def channels_together(features: Tensor) -> Tensor:
    """The same with the channels of a cell side by side in memory."""
    return features.contiguous(memory_format=torch.channels_last)
