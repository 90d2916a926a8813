"""Splits labelled pictures into folds: every class is in every fold, and pictures that belong together are in one fold.

The pictures are dealt into J folds. Split j is tested on fold j, chooses its settings on fold j + 1 and learns from the
others, so every picture is tested once, and never chooses what it is tested with.

Axes: N pictures, or questions about them, J splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.data.tables.splits import hashed_share
from saccade.probing.questions import Questions, pictures_of

MIN_GROUPS = 3
"""Groups of pictures that a class needs: one to learn from, one to choose with, one to be tested on."""


class Split(NamedTuple):
    """Numbers of pictures, (n,) each."""

    train: Tensor
    val: Tensor
    test: Tensor


def deal(labels: Sequence[int], groups: Sequence[int], folds: int, seed: int = 0) -> list[int]:
    """The fold of each picture.

    Groups are dealt class by class, large ones first, each to the fold that has the fewest pictures of its class; of
    equal ones to that with the fewest pictures. A group of several classes goes with its most frequent one.
    """
    members: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    label_of = {
        group: min(Counter(labels[each] for each in held).items(), key=lambda pair: (-pair[1], pair[0]))[0]
        for group, held in members.items()
    }
    order = sorted(
        members, key=lambda group: (label_of[group], -len(members[group]), hashed_share(f"{seed} {group}"), group)
    )
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
    made = []
    for number in range(folds):
        chosen = (fold == number, fold == (number + 1) % folds)
        parts = (~(chosen[0] | chosen[1]), chosen[1], chosen[0])
        made.append(Split(*(part.nonzero()[:, 0] for part in parts)))
    return made


def groups_of_class(labels: Sequence[int], groups: Sequence[int]) -> Counter[int]:
    """How many groups each class has."""
    return Counter(label for label, _ in {*zip(labels, groups)})


def some_of(split: Split, share: float, labels: Tensor, questions: Questions | None = None) -> Tensor:
    """The first ``share`` of the training pictures of each class, at least one: (n,) examples.

    With questions a picture has several answers, so classes are not looked at: a picture comes with all its questions.
    """
    if questions is not None:
        pictures = pictures_of(split.train, questions).tolist()
        ranked = sorted(pictures, key=lambda number: hashed_share(f"share {number}"))
        some = torch.tensor(ranked[: max(1, round(share * len(ranked)))])
        return split.train[torch.isin(questions.picture[split.train], some)]
    order = torch.tensor(sorted(split.train.tolist(), key=lambda number: hashed_share(f"share {number}")))
    kept: list[Tensor] = []
    for label in sorted({*labels[order].tolist()}):
        own = order[labels[order] == label]
        kept.append(own[: max(1, round(share * len(own)))])
    return torch.cat(kept).sort().values
