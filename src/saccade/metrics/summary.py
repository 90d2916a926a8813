"""The summary of an evaluation: one dictionary of plain numbers, of the same shape for every family.

==============  ====================================================================================================
``n``           examples that were scored
``definition``  :data:`DEFINITION`, the version of the rules for baselines and intervals
``metrics``     scores of the answers
``attention``   scores of the maps, and ``by_look`` those of single looks
``baselines``   the same scores of what a model is compared with, by the name of the baseline
``intervals``   [low, high] of the scores, see :mod:`saccade.metrics.intervals`
``counts``      how many values a mean rests on
``units``       of scores that are no fractions, where there are any: what they count
==============  ====================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from saccade.metrics.columns import Values
from saccade.metrics.intervals import Interval
from saccade.metrics.maps.scorer import MapScorer

DEFINITION = 2
"""Version 1 made baselines and the bound of a model with several grids on its last grid alone, exchanged maps once for
``shuffled``, and had intervals by bootstrap. Scores of different versions are not on the same footing."""


def summarise(
    *,
    n: int | None = None,
    metrics: Mapping[str, Any] | None = None,
    maps: MapScorer | None = None,
    measured: Iterable[tuple[Values, Tensor]] = (),
    attention: Mapping[str, Any] | None = None,
    baselines: Mapping[str, Mapping[str, float]] | None = None,
    intervals: Mapping[str, Interval] | None = None,
    counts: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    keep_undefined: bool = False,
) -> dict[str, Any]:
    """Put scores together; NaN becomes None, as in JSON.

    Args:
        n: examples that were scored; None: as many as ``maps`` were.
        metrics: scores of answers, as they are to be told.
        maps: what was scored of maps: means, baselines, intervals and counts.
        measured: further values with the picture (N,) of each: their intervals and counts are told. Their means are
            metrics or attention, which the caller says.
        attention: scores to be told beside those of the maps.
        baselines: scores of baselines to be told before those of the maps.
        intervals: of scores that are not a mean over examples.
        counts: further counts.
        units: of scores that are no fractions: what they count, such as ``task``.
        keep_undefined: tell scores of maps and values that no example has as None, instead of leaving them out.
    """

    def told(means: Mapping[str, float]) -> dict[str, float]:
        return dict(means) if keep_undefined else only_defined(means)

    maps = MapScorer() if maps is None else maps
    looks = None if maps.by_look is None else {name: told(held.means()) for name, held in maps.by_look.items()}
    rivals = {name: told(held.means()) for name, held in maps.baselines.items()}
    found = maps.intervals()
    for values, groups in measured:
        found |= values.intervals(groups)
    found = {name: each for name, each in found.items() if keep_undefined or each.n}
    return without_nan({
        "n": len(maps.groups) if n is None else n,
        "definition": DEFINITION,
        "metrics": dict(metrics or {}),
        "attention": told(maps.total.means()) | dict(attention or {}) | ({} if looks is None else {"by_look": looks}),
        "baselines": dict(baselines or {}) | {name: means for name, means in rivals.items() if means},
        "intervals": {name: [each.low, each.high] for name, each in ({**(intervals or {}), **found}).items()},
        "counts": {name: each.n for name, each in found.items()} | dict(counts or {}),
        **({"units": dict(units)} if units else {}),
    })  # fmt: skip


def only_defined(means: Mapping[str, float]) -> dict[str, float]:
    """The means that are numbers: a score that no example has is left out."""
    return {name: mean for name, mean in means.items() if mean == mean}


def without_nan(value: Any) -> Any:
    """NaN means undefined; JSON says null."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
