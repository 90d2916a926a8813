"""What the kept head does picture by picture: its confusions, scores of classes, calibration and worst mistakes.

All of it is from test pictures: each picture is answered by the head of the split that tests it, which never saw it.

Axes: N pictures, K classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.metrics.answers.calibration import calibration_error, confusion_matrix

WORST = 20
"""Mistakes that are shown."""
BINS = 10
"""Of the table of calibration."""


class ClassScore(NamedTuple):
    """Scores of one class."""

    name: str
    pictures: int
    recall: float
    """Share of its pictures that were answered right."""
    precision: float
    """Share of its answers that were right; NaN where it was never answered."""


class Mistake(NamedTuple):
    """A wrong answer."""

    picture: int
    true: str
    said: str
    confidence: float
    of_true: float
    """Probability of the right answer."""


class Bin(NamedTuple):
    """Answers of one range of confidence."""

    low: float
    high: float
    answers: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Details:
    """All of it."""

    matrix: Tensor
    """(K,K): a row for each true class, a column for each answer."""
    classes: tuple[ClassScore, ...]
    mistakes: tuple[Mistake, ...]
    """The worst, the surest wrong answer first."""
    calibration: float
    """Expected calibration error."""
    bins: tuple[Bin, ...]


def details_of(probabilities: Tensor, labels: Tensor, classes: Sequence[str]) -> Details:
    """From probabilities (N,K) and labels (N,)."""
    confidence, said = probabilities.max(1)  # (N,)
    right = said == labels
    matrix = confusion_matrix(said, labels, len(classes))  # (K,K)
    answered, held, hits = matrix.sum(0), matrix.sum(1), matrix.diagonal()
    scores = tuple(
        ClassScore(
            name, int(held[number]), float(hits[number] / held[number]), float(hits[number] / answered[number])
        )  # 0/0 is NaN
        for number, name in enumerate(classes)
    )
    own = probabilities.gather(1, labels[:, None])[:, 0]  # (N,)
    wrong = (~right).nonzero()[:, 0]
    order = wrong[(confidence - own)[wrong].argsort(descending=True, stable=True)][:WORST].tolist()
    mistakes = tuple(
        Mistake(n, classes[int(labels[n])], classes[int(said[n])], float(confidence[n]), float(own[n])) for n in order
    )
    return Details(matrix, scores, mistakes, calibration_error(confidence, right.float()), _bins(confidence, right))


def _bins(confidence: Tensor, right: Tensor) -> tuple[Bin, ...]:
    place = (confidence * BINS).long().clamp(max=BINS - 1)  # (N,)
    found = []
    for number in range(BINS):
        inside = place == number
        if bool(inside.any()):
            means = (float(confidence[inside].double().mean()), float(right[inside].double().mean()))
            found.append(Bin(number / BINS, (number + 1) / BINS, int(inside.sum()), *means))
    return tuple(found)


def frequent_confusions(matrix: Tensor, classes: Sequence[str], most: int) -> list[tuple[str, str, int]]:
    """True class, answer and how often, the most frequent mistakes first."""
    wrong = matrix.clone().fill_diagonal_(0)
    order = torch.argsort(wrong.flatten(), descending=True, stable=True)[:most].tolist()
    places = [(place // len(classes), place % len(classes)) for place in order]
    return [(classes[true], classes[said], int(wrong[true, said])) for true, said in places if wrong[true, said]]
