"""One-label answers picture by picture: confusions, scores of classes, calibration and the worst mistakes.

Axes: N answers, K classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.metrics.answers.calibration import calibration_error, confusion_matrix
from saccade.metrics.evaluation import DetailEntries, Part

WORST = 20
"""Mistakes that are shown."""
BINS = 10
"""Bins of the calibration table."""
CONFUSIONS = 30
"""Pairs of classes that are told, the most confused first."""
MATRIX = 50
"""Classes of a confusion matrix that is written down at most."""


class ClassScore(NamedTuple):
    """Scores of one class."""

    name: str
    pictures: int
    recall: float
    """Share of its pictures that were answered right; NaN where it has none."""
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

    names: tuple[str, ...]
    """Names of the classes."""
    matrix: Tensor
    """(K,K): a row for each true class, a column for each answer."""
    classes: tuple[ClassScore, ...]
    mistakes: tuple[Mistake, ...]
    """The worst, the surest wrong answer first."""
    calibration: float
    """Expected calibration error."""
    bins: tuple[Bin, ...]

    def to_json(self, place: Callable[[int], Part] | None = None) -> DetailEntries:
        """``confusion``, ``per_class`` and ``mistakes`` as plain values.

        Args:
            place: number of an answer → what tells it, such as its picture; None: mistakes are not told.
        """
        few = len(self.names) <= MATRIX
        shown: Part = {"classes": list(self.names), "matrix": self.matrix.tolist()} if few else {}
        found = confusions(self.matrix, self.names)
        pairs: list[Part] = [{"true": true, "said": said, "n": times} for true, said, times in found]
        return {
            "confusion": {**shown, "mistakes": pairs},
            "per_class": {
                score.name: {
                    "pictures": score.pictures,
                    "recall": _known(score.recall),
                    "precision": _known(score.precision),
                }
                for score in self.classes
                if score.pictures or score.precision == score.precision
            },
            "mistakes": [
                {
                    **place(each.picture),
                    "true": each.true,
                    "said": each.said,
                    "confidence": each.confidence,
                    "of_true": each.of_true,
                }
                for each in self.mistakes
                if place is not None
            ],
        }


def details_of(said: Tensor, labels: Tensor, confidence: Tensor, of_true: Tensor, classes: Sequence[str]) -> Details:
    """From answers and labels (N,), the probability of the answer (N,) and that of the right answer (N,)."""
    right = said == labels  # (N,)
    matrix = confusion_matrix(said, labels, len(classes))  # (K,K)
    answered, held, hits = matrix.sum(0), matrix.sum(1), matrix.diagonal()
    scores = tuple(
        ClassScore(
            name, int(held[number]), float(hits[number] / held[number]), float(hits[number] / answered[number])
        )  # 0/0 is NaN
        for number, name in enumerate(classes)
    )
    wrong = (~right).nonzero()[:, 0]
    order = wrong[(confidence - of_true)[wrong].argsort(descending=True, stable=True)][:WORST].tolist()
    mistakes = tuple(
        Mistake(n, classes[int(labels[n])], classes[int(said[n])], float(confidence[n]), float(of_true[n]))
        for n in order
    )
    return Details(
        names=tuple(classes),
        matrix=matrix,
        classes=scores,
        mistakes=mistakes,
        calibration=calibration_error(confidence, right.float()),
        bins=_bins(confidence, right),
    )


def _bins(confidence: Tensor, right: Tensor) -> tuple[Bin, ...]:
    place = (confidence * BINS).long().clamp(max=BINS - 1)  # (N,)
    found = []
    for number in range(BINS):
        inside = place == number
        if bool(inside.any()):
            means = (float(confidence[inside].double().mean()), float(right[inside].double().mean()))
            found.append(Bin(number / BINS, (number + 1) / BINS, int(inside.sum()), *means))
    return tuple(found)


def confusions(matrix: Tensor, classes: Sequence[str], most: int = CONFUSIONS) -> list[tuple[str, str, int]]:
    """True class, answer and how often, the most frequent mistakes first."""
    wrong = matrix.clone().fill_diagonal_(0)
    order = torch.argsort(wrong.flatten(), descending=True, stable=True)[:most].tolist()
    places = [(place // len(classes), place % len(classes)) for place in order]
    return [(classes[true], classes[said], int(wrong[true, said])) for true, said in places if wrong[true, said]]


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return value if value == value else None
