"""Confidence interval of a score that was measured on several splits of one set of pictures.

The splits share most of their training pictures, so their scores are not independent, and the usual interval of a mean
is too narrow. Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003, correct its
variance: with J splits, each with n₁ pictures to learn from and n₂ to be tested on, and the variance s² of the scores,

    Var(mean) ≈ (1/J + n₂/n₁) s²,    interval: mean ± t(J − 1) √Var

Scores of a few pictures come in steps. Where all splits agree by chance, s² would be 0 and the interval would have no
width. So s² is at least what it is when one picture of one split is answered otherwise: (1/n₂)² / J.

Axes: J splits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.student import t_quantile


class Resplit(NamedTuple):
    """A mean over splits with its corrected interval."""

    mean: float
    half: float
    """Half the width of the interval; NaN with fewer than two splits."""
    splits: int

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half

    @property
    def is_beyond_zero(self) -> bool:
        """Whether the interval of a difference leaves 0 outside: a difference was detected."""
        return self.low > 0 or self.high < 0


def resplit_interval(scores: Tensor, *, trained: float, tested: float, level: float = 0.95) -> Resplit:
    """The mean of ``scores`` (J,) of J splits, with its interval.

    A paired comparison is the interval of the differences, split by split.

    >>> import torch
    >>> found = resplit_interval(torch.tensor([0.70, 0.72, 0.74, 0.76, 0.78]), trained=60, tested=20)
    >>> round(found.mean, 4), round(found.half, 4)
    (0.74, 0.0641)

    Args:
        scores: one for each split; of several seeds their mean.
        trained: pictures that each split learns from, n₁; their mean where it differs.
        tested: pictures that each split is tested on, n₂.
        level: how often such intervals hold the truth.
    """
    if scores.dim() != 1 or not len(scores):
        raise ShapeError("scores", "(J,), one for each split", scores.shape)
    if trained <= 0 or tested <= 0:
        raise DataError(f"trained, tested: both must be above 0, found {trained:g} and {tested:g}")
    values = scores.detach().cpu().double()
    splits, mean = len(values), float(values.mean())
    if splits < 2:
        return Resplit(mean, math.nan, splits)
    variance = max(float(values.var()), tested**-2 / splits)  # s²
    half = t_quantile(level, splits - 1) * math.sqrt((1 / splits + tested / trained) * variance)
    return Resplit(mean, half, splits)
