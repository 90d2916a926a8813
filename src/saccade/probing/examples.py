"""The examples that a probe learns from, and the folds they are cut into; nothing here is a file.

Features are of pictures, everything else is of examples: N questions about P pictures. Where nothing is asked, an
example is a picture. Examples are dealt into J folds: every class is in every fold, and pictures that belong together
are in one fold. Split j is tested on fold j, chooses its settings on fold j + 1 and learns from the others, so every
picture is tested once, and never chooses what it is tested with.

Axes: N examples, P pictures, B pictures of a batch, R examples about them, J splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor

from saccade.data.examples import hashed_share
from saccade.models.probe_heads import ExampleQueries


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
class ProbedExamples:
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


class ProbeSplit(NamedTuple):
    """Numbers of examples, (n,) each."""

    train: Tensor
    val: Tensor
    test: Tensor


def deal(labels: Sequence[int], groups: Sequence[int], folds: int) -> list[int]:
    """The fold of each picture.

    Groups are dealt class by class, large ones first, each to the fold with the fewest pictures of its class, then with
    the fewest pictures. A group of several classes goes with its most frequent one.
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


def splits_of(fold_of: Sequence[int], folds: int) -> list[ProbeSplit]:
    """The J splits of pictures that were dealt into J folds."""
    fold = torch.tensor(fold_of)  # (N,)
    splits = []
    for number in range(folds):
        test, val = fold == number, fold == (number + 1) % folds
        splits.append(ProbeSplit(*(part.nonzero()[:, 0] for part in (~(test | val), val, test))))
    return splits


def some_of(split: ProbeSplit, part: float, labels: Tensor, questions: Questions) -> Tensor:
    """The first training pictures of each class, at least one: (n,) examples. ``part`` is a share, or an int: how many.

    With questions, classes are not looked at: a picture comes with all its questions.
    """

    def ranked(numbers: Tensor) -> Tensor:
        order = sorted(numbers.tolist(), key=lambda number: hashed_share(f"share {number}"))
        return torch.tensor(order[: part if isinstance(part, int) else max(1, round(part * len(order)))])

    if questions.are_asked:
        some = ranked(questions.pictures_of(split.train))
        return split.train[torch.isin(questions.picture[split.train], some)]
    own = labels[split.train]
    return torch.cat([ranked(split.train[own == label]) for label in torch.unique(own)]).sort().values
