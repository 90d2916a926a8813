"""The losses of stories: one dataclass for each, by the name that a recipe uses."""

from __future__ import annotations

from dataclasses import dataclass

from saccade.config import Weight


@dataclass(frozen=True)
class AnswerLoss:
    """Cross-entropy of the answer, of every word where it is said word by word."""


@dataclass(frozen=True)
class LinearStart(AnswerLoss):
    """The same while the softmaxes over the memory are left out (Sukhbaatar et al. 2015, Section 4.2)."""


@dataclass(frozen=True)
class GatedLoss(AnswerLoss):
    """Cross-entropy of the answer, and of the choice of the supporting fact in each pass (Kumar et al. 2016)."""

    gates: Weight = 1.0
    """Weight of the gates, α in the paper."""


LOSSES: dict[str, type] = {
    "default": AnswerLoss,
    "answer": AnswerLoss,
    "linear_start": LinearStart,
    "gated": GatedLoss,
}
