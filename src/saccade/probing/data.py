"""What a probe learns from: usable pictures, the questions about them, and the folds they are cut into.

What cannot be used is left out, counted and named: files that cannot be read, classes with too few pictures to learn
from, to choose with and to be tested on, and questions that are asked about too few.

Features are of pictures, everything else is of examples: N questions about P pictures. Where nothing is asked, an
example is a picture. Examples are dealt into J folds: every class is in every fold, and pictures that belong together
are in one fold. Split j is tested on fold j, chooses its settings on fold j + 1 and learns from the others, so every
picture is tested once, and never chooses what it is tested with.

Axes: N examples, P pictures, B pictures of a batch, R examples about them, J splits, H and W pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from saccade.backbones.feature_folder import FeatureFolder
from saccade.data.examples import hashed_share
from saccade.data.pictures.files import copy_groups
from saccade.data.pictures.image_split import Evidence
from saccade.data.pictures.prepared import PreparedPictures
from saccade.data.tables.doubts import contradictions, first_few, pluralise, spellings, summarised
from saccade.data.tables.table import Row, Table
from saccade.errors import DataError
from saccade.geometry import Size
from saccade.metrics.result import Part
from saccade.models.probe_heads import ExampleQueries

MAX_CLASSES = 2_000
"""Classes that a probe compares at most: each rival has a row of weights for each of them, many times over."""
MAX_QUESTIONS = 500  # Questions that a probe asks at most: some rivals have weights for each of them
MIN_GROUPS = 3
"""Groups of pictures that a class needs: one to learn from, one to choose with, one to be tested on."""
DECODED = 2 << 30  # Bytes of decoded pictures that are kept in memory
_NAMED = 5
_UNSEEN = ("label never seen in train", "query never seen in train")
"""Rows that the reader leaves out by its own splits; a probe makes others and can use them."""

OnProgress = Callable[[str, float, int], None]
"""Called with what is going on, how far it is, and how far it goes."""


@dataclass(frozen=True)
class Questions:
    """What is asked, by the number of the example."""

    words: tuple[str, ...]  # The questions that are known; its place here is a question's number
    query: Tensor  # (N,) number of each question
    picture: Tensor  # (N,) number of the picture it is about

    @classmethod
    def none(cls, pictures: int) -> Questions:
        """Of each of so many pictures the same, which has no words."""
        return cls(("",), torch.zeros(pictures, dtype=torch.int64), torch.arange(pictures))

    @property
    def are_asked(self) -> bool:
        """Whether anything is asked; else an example is a picture."""
        return self.words != ("",)

    def about(self, pictures: Tensor) -> tuple[Tensor, ExampleQueries | None]:
        """All examples about the pictures (B,), picture by picture: their numbers (R,), and what they ask."""
        if not self.are_asked:
            return pictures, None
        place_of = torch.full((int(self.picture.max()) + 1,), -1)  # (P,) of each picture in the batch
        place_of[pictures] = torch.arange(len(pictures))
        place = place_of[self.picture]  # (N,)
        examples = (place >= 0).nonzero()[:, 0]
        examples = examples[place[examples].argsort(stable=True)]  # (R,)
        return examples, ExampleQueries(self.query[examples], place[examples])

    def parts(self, examples: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor, ExampleQueries | None]]:
        """The ``examples`` (n,) in parts about ``size`` pictures each.

        Of each part: its pictures (B,), the places (R,) of its examples among all ``examples``, and what they ask.
        """
        pictures, own = examples, torch.arange(len(examples))
        if self.are_asked:
            pictures, own = torch.unique(self.picture[examples], return_inverse=True)  # (P',), (n,)
        for first in range(0, len(pictures), size):
            places = ((own >= first) & (own < first + size)).nonzero()[:, 0]  # (R,)
            asked = ExampleQueries(self.query[examples[places]], own[places] - first) if self.are_asked else None
            yield pictures[first : first + size], places, asked

    def pictures_of(self, examples: Tensor) -> Tensor:
        """The pictures that the ``examples`` (n,) are about, each once."""
        return cast(Tensor, torch.unique(self.picture[examples]))


@dataclass(frozen=True)
class Examples:
    """What is learned: labels of pictures, or answers to questions about pictures. Nothing here is a file."""

    labels: Tensor  # (N,) the number of each example's class
    classes: Sequence[str]
    groups: Sequence[int]  # The group number of each example; examples of one group belong together
    questions: Questions

    def __len__(self) -> int:
        return len(self.labels)

    def query(self, examples: Tensor) -> Tensor | None:
        """The numbers (B,) of the questions; None where nothing is asked."""
        return self.questions.query[examples] if self.questions.are_asked else None


@dataclass(frozen=True)
class ProbedPictures(Examples):
    """Examples of a table, with their files."""

    paths: Sequence[Path]  # (P,) the files
    store: PreparedPictures
    places: Tensor  # (P,) where each picture is in the store
    rows: Tensor  # (N,) the row of each example's evidence
    evidence: Evidence | None  # Where labels can be seen, by row; None where the data does not say
    remarks: Sequence[str]  # What was left out, and what else is to be known, in words
    copies: Sequence[tuple[str, str]]  # A picture and the first one with the same bytes
    folder: FeatureFolder | None = None  # Whose maps stand in for a network, if any

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: what is known of the pictures, but no pixels."""
        return {**vars(self), "store": None, "evidence": None, "folder": None}

    def place(self, example: int) -> Part:
        """The file of an example, and what is asked about it."""
        path = self.paths[int(self.questions.picture[example])]
        asked = {"asked": self.questions.words[int(self.questions.query[example])]} if self.questions.are_asked else {}
        return {"picture": str(path), **asked}

    def inputs(self, pictures: Tensor) -> Tensor:
        """Pictures by number, as the network sees them: (B,3,H,W)."""
        return self.store.take(self.places[pictures])

    def canvas(self, examples: Tensor) -> tuple[Tensor, Tensor]:
        """For each picture: the frame from the network input to it (B,2,3), and its height and width (B,2)."""
        place = self.places[self.questions.picture[examples]]
        size = self.store.image_size[place]
        return self.store.canvas[place] if self.folder is None else self.folder.canvas(size), size


def _with_maps(table: Table, rows: Sequence[Row], folder: FeatureFolder) -> tuple[tuple[Row, ...], str]:
    """The ``rows`` whose pictures have a map in ``folder``, and a remark on the others."""
    kept = tuple(row for row in rows if folder.file_of(row.image) is not None)
    if not kept:
        raise DataError(
            f"{folder.folder}: no map has the name of a picture of {table.name}, such as {rows[0].image.stem}"
        )
    folder.check_apart([row.image for row in kept])
    lost = [row.image.name for row in rows if folder.file_of(row.image) is None]
    return kept, f"{pluralise(len(lost), 'picture')} left out without a map: {first_few(lost, _NAMED)}" if lost else ""


def usable_pictures(
    table: Table, size: Size, on_progress: OnProgress, folder: FeatureFolder | None = None
) -> ProbedPictures:
    """The pictures and questions of ``table`` that a probe can use; its own splits are put together.

    With a ``folder`` of maps, only pictures that have one can be used. A DataError where fewer than two classes can be
    compared, or too many.
    """
    rows, lost = table.as_found or table.rows, ""
    if folder is not None:
        rows, lost = _with_maps(table, rows, folder)
    _check_count(table.name, "classes", {row.label for row in rows}, MAX_CLASSES)
    remarks = [lost, *_doubts(table, rows)] if lost else _doubts(table, rows)
    files = [*dict.fromkeys(row.image for row in rows)]
    own = _numbers([row.image for row in rows], files)  # the picture of each row
    cpu = torch.device("cpu")
    store = PreparedPictures(files, size, cpu, limit=DECODED, progress=partial(on_progress, "pictures"))
    if store.unreadable:
        broken = [files[number].name for number in sorted(store.unreadable)]
        remarks.append(f"{pluralise(len(broken), 'picture')} cannot be read: {first_few(broken, _NAMED)}")
    readable = [number for number in range(len(files)) if number not in store.unreadable]
    evidence = Evidence(rows, store, cpu, limit=DECODED, picture_of=own)
    if evidence.wrong:
        remarks.append(f"evidence that cannot be used: {summarised([*evidence.wrong.values()])}")
    copied = copy_groups([files[number] for number in readable])
    original = {number: readable[first] for number, first in zip(readable, copied)}  # picture → first with its bytes
    usable = [place for place in range(len(rows)) if own[place] in original]  # rows
    groups = together([[original[own[place]], *filter(None, [rows[place].group])] for place in usable])
    named = {rows[place].group for place in usable} - {""}
    if named:
        remarks.append(
            f"{pluralise(len(named), 'group')} of pictures that belong together, by the column 'group': each stays on "
            "one side of every split"
        )
    kept = _frequent([rows[place] for place in usable], groups, "groups" if named else "pictures", remarks)
    places = [usable[at] for at in kept]  # rows
    classes = sorted({rows[place].label for place in places})
    if len(classes) < 2:
        raise DataError(
            f"{table.name}: {pluralise(len(classes), 'class', 'classes')} with {MIN_GROUPS} different pictures or "
            f"more; a probe needs two of them: add pictures{''.join(f'; {remark}' for remark in remarks)}"
        )
    words = sorted({rows[place].query for place in places})
    _check_count(table.name, "questions", words, MAX_QUESTIONS)
    pictures = [*dict.fromkeys(own[place] for place in places)]  # of the store
    return ProbedPictures(
        labels=torch.tensor(_numbers([rows[place].label for place in places], classes)),
        classes=tuple(classes),
        groups=tuple(groups[at] for at in kept),
        questions=Questions(
            tuple(words),
            torch.tensor(_numbers([rows[place].query for place in places], words)),
            torch.tensor(_numbers([own[place] for place in places], pictures)),
        ),
        paths=tuple(files[number] for number in pictures),
        store=store,
        places=torch.tensor(pictures),
        rows=torch.tensor(places),
        evidence=evidence if evidence.is_there else None,
        remarks=remarks,
        copies=[(files[n].name, files[original[n]].name) for n in pictures if original[n] != n],
        folder=folder,
    )


def _numbers(values: Sequence[Any], known: Sequence[Any]) -> list[int]:
    """The place of each value among the known ones."""
    number = {value: place for place, value in enumerate(known)}
    return [number[value] for value in values]


def _doubts(table: Table, rows: Sequence[Row]) -> list[str]:
    """What is wrong with a table before a picture is opened, in words."""
    skipped = [entry for entry in table.skipped if not entry.startswith(_UNSEEN)]
    asked = sorted({row.query for row in rows} - {""})
    doubts = (
        f"left out when {table.name} was read: {summarised(skipped)}" if skipped else "",
        spellings(sorted({row.label for row in rows}), "labels"),
        spellings(asked, "questions"),
        contradictions(((row.image, row.query, (row.label,)) for row in rows), "question") if asked else "",
    )
    return [doubt for doubt in doubts if doubt]


def _frequent(rows: Sequence[Row], groups: Sequence[int], what: str, remarks: list[str]) -> list[int]:
    """The ``rows`` whose question and label come in enough groups; the others are said in ``remarks``."""
    kept = [*range(len(rows))]
    for thing, several, column in (("question", "questions", "query"), ("class", "classes", "label")):
        words = [getattr(rows[at], column) for at in kept]
        count = Counter(word for word, _ in {(word, groups[at]) for word, at in zip(words, kept)})
        few = sorted(word for word in count if count[word] < MIN_GROUPS)
        if few and (column == "label" or {*words} != {""}):
            remarks.append(
                f"{pluralise(len(few), thing, several)} left out with fewer than {MIN_GROUPS} different {what}: "
                f"{first_few(few, _NAMED)}"
            )
            kept = [at for word, at in zip(words, kept) if word not in few]
    return kept


def _check_count(name: str, several: str, words: Collection[str], most: int) -> None:
    if len(words) > most:
        raise DataError(f"{name}: {len(words):,} {several}; a probe compares {most:,} at most: name a part of the data")


def together(keys: Sequence[Sequence[Hashable]]) -> list[int]:
    """The group of each thing by its ``keys``, one or more: those that share one are in one group, (N,) numbers.

    >>> together([["a"], ["b"], ["c", "a"], ["d", "b", "c"]])
    [0, 0, 0, 0]
    """
    parent: dict[Hashable, Hashable] = {}

    def root(key: Hashable) -> Hashable:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for first, *others in keys:
        for other in others:
            parent[root(other)] = root(first)
    number_of: dict[Hashable, int] = {}
    return [number_of.setdefault(root(first), number) for number, (first, *_) in enumerate(keys)]


class Split(NamedTuple):
    """Numbers of examples, (n,) each."""

    train: Tensor
    val: Tensor
    test: Tensor


def deal(labels: Sequence[int], groups: Sequence[int], folds: int) -> list[int]:
    """The fold of each picture.

    Groups are dealt class by class, large ones first, each to the fold that has the fewest pictures of its class; of
    equal ones to that with the fewest pictures. A group of several classes goes with its most frequent one.
    """
    members: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)

    count = {group: Counter(labels[number] for number in numbers) for group, numbers in members.items()}
    label_of = {group: min(of, key=lambda label: (-of[label], label)) for group, of in count.items()}
    order = sorted(members, key=lambda g: (label_of[g], -len(members[g]), hashed_share(f"0 {g}"), g))
    of_class: Counter[tuple[int, int]] = Counter()
    total: Counter[int] = Counter()
    fold_of = [0] * len(labels)
    for group in order:
        label = label_of[group]
        fold = min(range(folds), key=lambda fold: (of_class[fold, label], total[fold], fold))
        for number in members[group]:
            fold_of[number] = fold
            of_class[fold, labels[number]] += 1
            total[fold] += 1
    return fold_of


def splits_of(fold_of: Sequence[int], folds: int) -> list[Split]:
    """The J splits of pictures that were dealt into J folds."""
    fold = torch.tensor(fold_of)  # (N,)
    splits = []
    for number in range(folds):
        test, val = fold == number, fold == (number + 1) % folds
        splits.append(Split(*(part.nonzero()[:, 0] for part in (~(test | val), val, test))))
    return splits


def some_of(split: Split, part: float, labels: Tensor, questions: Questions) -> Tensor:
    """The first training pictures of each class, at least one: (n,) examples. ``part`` is a share, or an int: how many.

    With questions a picture has several answers, so classes are not looked at: a picture comes with all its questions.
    """

    def ranked(numbers: Tensor) -> Tensor:
        order = sorted(numbers.tolist(), key=lambda number: hashed_share(f"share {number}"))
        return torch.tensor(order[: part if isinstance(part, int) else max(1, round(part * len(order)))])

    if questions.are_asked:
        some = ranked(questions.pictures_of(split.train))
        return split.train[torch.isin(questions.picture[split.train], some)]
    own = labels[split.train]
    return torch.cat([ranked(split.train[own == label]) for label in torch.unique(own)]).sort().values
