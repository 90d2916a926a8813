"""Mean and spread of one score over the seeds of a cell, and how sure its distance to a published number is.

Two things make a cell uncertain: which test pictures there were and which seed trained the model. All seeds of a cell
are tested on the same pictures, so more seeds do not make the first part smaller: its half-width is the mean of the
runs' own intervals (with the picture as the unit). The second part is Student's t for the mean of the seeds. The two
are independent and add in quadrature. With one seed only the first part is known. Papers do not print the uncertainty
of their numbers, so a published number counts as exact.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import hypot, sqrt

from saccade.errors import DataError
from saccade.recorded.runs import RecordedRun

_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % points of Student's t by degrees of freedom from 1; beyond, the last stands (a little too wide)."""


@dataclass(frozen=True)
class Measured:
    """One score of one cell."""

    mean: float
    std: float | None
    """Over the seeds, with n − 1; None with one seed."""
    low: float | None
    """95 % interval of the mean; None where the runs recorded none."""
    high: float | None
    seeds: tuple[int, ...]
    n: int
    """Test examples of each seed; of the smallest, where they differ."""


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


@dataclass(frozen=True)
class Difference:
    """Measured minus published."""

    value: float
    low: float | None
    high: float | None


def measure(runs: Iterable[RecordedRun], metric: str, *, of: str | None = None) -> Measured | None:
    """The mean of ``metric`` over ``runs`` of one cell, which differ in their seed; None when none of them has it.

    Args:
        runs: of one cell.
        metric: a name among the metrics or the attention scores.
        of: a baseline instead of the model.
    """
    found = by_seed(runs, metric, of)
    if not found:
        return None
    values = [value for _, value in found.values()]
    mean = statistics.fmean(values)
    std, between = _between(values)
    intervals = [run.interval(metric) if of is None else None for run, _ in found.values()]
    reach = [(value - each[0], each[1] - value) for value, each in zip(values, intervals) if each is not None]
    low = high = None
    if len(reach) == len(found):
        low = mean - hypot(statistics.fmean(below for below, _ in reach), between)
        high = mean + hypot(statistics.fmean(above for _, above in reach), between)
    return Measured(mean, std, low, high, tuple(sorted(found)), min(run.count(metric) for run, _ in found.values()))


def by_seed(runs: Iterable[RecordedRun], metric: str, of: str | None = None) -> dict[int, tuple[RecordedRun, float]]:
    """The runs of one cell that have ``metric``, or that of the baseline ``of``, with its value, by their seed.

    Raises:
        DataError: two of them have the same seed.
    """
    found: dict[int, tuple[RecordedRun, float]] = {}
    for run in runs:
        value = run.value(metric, of)
        if value is None:
            continue
        if run.seed in found:
            raise DataError(
                f"{run.name} and {found[run.seed][0].name} are both seed {run.seed} of one cell: keep one of them "
                "among the results and put the other with the variants"
            )
        found[run.seed] = run, value
    return found


def spread(values: Mapping[int, float]) -> Spread:
    """Mean, standard deviation and interval of ``values`` by seed, of which there is one or more.

    >>> found = spread({0: 0.90, 1: 0.92, 2: 0.94})
    >>> f"{found.mean:.2f} ± {found.std:.2f} ({found.low:.4f}–{found.high:.4f})"
    '0.92 ± 0.02 (0.8703–0.9697)'
    """
    mean = statistics.fmean(values.values())
    std, between = _between(list(values.values()))
    low, high = (None, None) if std is None else (mean - between, mean + between)
    return Spread(mean, std, low, high, tuple(sorted(values)))


def _between(values: list[float]) -> tuple[float | None, float]:
    """Standard deviation over seeds and the half-width of the mean's interval by it; None and 0 with one seed."""
    if len(values) < 2:
        return None, 0.0
    std = statistics.stdev(values)
    return std, _STUDENT[min(len(values) - 1, len(_STUDENT)) - 1] * std / sqrt(len(values))


def difference(measured: Measured, published: float) -> Difference:
    """How far ``measured`` lies from ``published``, with the interval of what was measured."""
    low, high = (None if end is None else end - published for end in (measured.low, measured.high))
    return Difference(measured.mean - published, low, high)
