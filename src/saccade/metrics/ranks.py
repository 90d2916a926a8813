"""Is a ranking of methods stable, and which differences are significant?

========================  ==========================================================================================
:func:`kendall_tau`       τ_b of two orders: 1 where they agree, 0 by chance; ties in either count in neither
:func:`paired`            a mean difference over pictures with its two-sided p (t, the picture as the unit)
:func:`holm`              p-values of several comparisons, each made larger so that one in twenty of all sets errs
========================  ==========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import ShapeError
from saccade.metrics.student import t_tails


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's τ_b (1945); NaN where all of either are equal.

    >>> kendall_tau([1, 2, 3, 4], [1, 2, 4, 3])
    0.6666666666666666
    """
    if len(one) != len(other):
        raise ShapeError("other", f"({len(one)},)", (len(other),))
    first, second = (torch.tensor(list(each), dtype=torch.float64) for each in (one, other))
    upper = torch.ones(len(one), len(one)).triu(1).bool()  # each pair once
    a, b = ((each[:, None] - each[None, :]).sign()[upper] for each in (first, second))  # (pairs,)
    ranked = float((a != 0).sum()) * float((b != 0).sum())
    return float((a * b).sum()) / math.sqrt(ranked) if ranked else math.nan


class Paired(NamedTuple):
    """A mean difference over pictures."""

    difference: float
    p: float
    pictures: int


def paired(one: Tensor, other: Tensor, pictures: Tensor) -> Paired:
    """How much ``one`` (N,) exceeds ``other`` (N,) where both are defined, picture by picture.

    Values of one picture are averaged first: it is the unit. p is 1 where no value differs, NaN with fewer than two
    pictures.

    Args:
        one: scores, NaN where undefined.
        other: scores of the same questions.
        pictures: (N,) id of each question's picture.
    """
    apart = one.double() - other.double()  # (N,)
    defined = ~apart.isnan()
    found, which = torch.unique(pictures[defined], return_inverse=True)  # (G,), (n,)
    count = len(found)
    if count < 2:
        return Paired(float(apart[defined].mean()) if count else math.nan, math.nan, count)
    sums = torch.zeros(count, dtype=torch.float64).index_add_(0, which, apart[defined])
    means = sums / torch.bincount(which, minlength=count)  # (G,)
    mean, error = float(means.mean()), float(means.std()) / math.sqrt(count)
    if error == 0:
        return Paired(mean, 1.0 if mean == 0 else 0.0, count)
    return Paired(mean, t_tails(abs(mean) / error, count - 1), count)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979) of p-values; NaN stays NaN and counts as no comparison.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = sorted((value, place) for place, value in enumerate(values) if not math.isnan(value))
    found, worst = [math.nan] * len(values), 0.0
    for rank, (value, place) in enumerate(known):
        worst = max(worst, min(1.0, (len(known) - rank) * value))
        found[place] = worst
    return found
