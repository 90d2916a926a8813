"""Mean and spread of one score over the seeds of a run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % points of Student's t by degrees of freedom from 1; beyond, the last stands (a little too wide)."""


@dataclass(frozen=True)
class Spread:
    """One score over seeds of which nothing else is known: how sure each is by its examples was not measured."""

    mean: float
    std: float | None
    """With n − 1; None with one seed."""
    low: float | None
    """95 % interval of the mean, by Student's t over the seeds alone; None with one seed."""
    high: float | None
    seeds: tuple[int, ...]


def spread(values: Mapping[int, float]) -> Spread:
    """Mean, standard deviation and interval of ``values`` by seed, of which there is one or more.

    >>> found = spread({0: 0.90, 1: 0.92, 2: 0.94})
    >>> f"{found.mean:.2f} ± {found.std:.2f} ({found.low:.4f}–{found.high:.4f})"
    '0.92 ± 0.02 (0.8703–0.9697)'
    """
    mean = statistics.fmean(values.values())
    std, half = between_seeds(list(values.values()))
    low, high = (None, None) if std is None else (mean - half, mean + half)
    return Spread(mean, std, low, high, tuple(sorted(values)))


def between_seeds(values: Sequence[float]) -> tuple[float | None, float]:
    """Standard deviation over seeds and the half-width of the mean's interval by it; None and 0 with one seed."""
    if len(values) < 2:
        return None, 0.0
    std = statistics.stdev(values)
    return std, _STUDENT[min(len(values) - 1, len(_STUDENT)) - 1] * std / sqrt(len(values))
