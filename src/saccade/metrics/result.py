"""What an evaluation returns, and how scores are put together for it.

An evaluation is plain values under known keys, as ``saccade evaluate --json`` prints them, the same for every family:

==============  ====================================================================================================
``n``           examples that were scored
``definition``  :data:`DEFINITION`, the version of the rules for baselines and intervals
``metrics``     scores of the answers
``attention``   scores of the maps, and ``by_look`` those of single looks
``baselines``   the same scores of what a model is compared with, by the name of the baseline
``intervals``   [low, high] of the scores, see :mod:`saccade.metrics.intervals`
``counts``      how many values a mean rests on
==============  ====================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from torch import Tensor

from saccade.metrics.intervals import Interval, Values
from saccade.metrics.maps.scorer import MapScorer

ScoreValue: TypeAlias = "float | Mapping[str, ScoreValue] | None"
"""A score, None if undefined; or several by name."""
Scores: TypeAlias = dict[str, ScoreValue]
CountValue: TypeAlias = "int | dict[str, int] | dict[str, list[str]]"
"""A number, several by name, or names of what lacks a score."""
Part: TypeAlias = dict[str, Any]
"""Plain values by name."""
Summary: TypeAlias = dict[str, Any]
"""Scores under the keys above, as far as they are known; families may add ``note``, ``interventions``, ``verdict``,
``against``, ``rests_on``, ``confusion``, ``per_class`` and ``mistakes``."""
Evaluation: TypeAlias = dict[str, Any]
"""The summary, and what was scored: ``model``, ``data``, ``split``, ``protocol``, ``seed``, ``seconds`` …"""


def evaluation(summary: Summary, *, data: str, split: str, **described: object) -> Evaluation:
    """The scores, after what they are of."""
    return {"data": data, "split": split, **described, **summary}


DEFINITION = 2
"""Scores of different versions do not compare. Version 1 made baselines of a model with several grids on its last grid
alone, exchanged maps once for ``shuffled``, and had intervals by bootstrap."""


def summarise(
    *,
    n: int | None = None,
    metrics: Mapping[str, ScoreValue] | None = None,
    maps: MapScorer | None = None,
    measured: Iterable[tuple[Values, Tensor]] = (),
    attention: Mapping[str, ScoreValue] | None = None,
    baselines: Mapping[str, Mapping[str, ScoreValue]] | None = None,
    intervals: Mapping[str, Interval] | None = None,
    counts: Mapping[str, CountValue] | None = None,
    keep_undefined: bool = False,
) -> Summary:
    """Put scores together; NaN becomes None, as in JSON.

    Args:
        n: examples that were scored; None: as many as ``maps`` were.
        metrics: scores of answers.
        maps: what was scored of maps: means, baselines, intervals and counts.
        measured: further values with the picture (N,) of each, for intervals and counts. The caller puts their means
            into metrics or attention.
        attention: further scores of maps.
        baselines: further scores of baselines, which come before those of the maps.
        intervals: of scores that are not a mean over examples.
        counts: further counts.
        keep_undefined: show scores that no example has as None, instead of leaving them out.
    """

    def shown(means: Mapping[str, float]) -> dict[str, ScoreValue]:
        return {**(means if keep_undefined else only_defined(means))}

    maps = MapScorer() if maps is None else maps
    of_maps: Scores = {**shown(maps.total.means()), **(attention or {})}
    if maps.by_look is not None:
        of_maps["by_look"] = {name: shown(scores.means()) for name, scores in maps.by_look.items()}
    rivals: dict[str, Scores] = {name: {**means} for name, means in (baselines or {}).items()}
    for name, scores in maps.baselines.items():
        if means := shown(scores.means()):
            rivals.setdefault(name, {}).update(means)
    of_means = maps.intervals()
    for values, groups in measured:
        of_means |= values.intervals(groups)
    of_means = {name: interval for name, interval in of_means.items() if keep_undefined or interval.n}
    return without_nan({
        "n": len(maps.groups) if n is None else n,
        "definition": DEFINITION,
        "metrics": dict(metrics or {}),
        "attention": of_maps,
        "baselines": rivals,
        "intervals": {name: [ends.low, ends.high] for name, ends in {**(intervals or {}), **of_means}.items()},
        "counts": {**{name: interval.n for name, interval in of_means.items()}, **(counts or {})},
    })  # fmt: skip


def only_defined(means: Mapping[str, float]) -> dict[str, float]:
    """The means that are not NaN."""
    return {name: mean for name, mean in means.items() if mean == mean}


T = TypeVar("T")


def without_nan(value: T) -> T:
    """The same plain values with None for NaN."""
    plain: Any = value
    if isinstance(value, dict):
        plain = {key: without_nan(item) for key, item in value.items()}
    elif isinstance(value, list):
        plain = [without_nan(item) for item in value]
    elif isinstance(value, float) and math.isnan(value):
        plain = None
    return cast(T, plain)
