"""Scores of answers and of attention, with baselines, bounds and confidence.

Plain tensor functions that return one value per picture, (B,), so that the caller can average, split and bootstrap;
NaN means "no such score here" and is counted by every aggregate. The torchmetrics classes (``Accuracy``,
``MeanScore``, ``PrAuc``) are loaded on first use: importing this package does not import torchmetrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saccade.metrics import baselines
from saccade.metrics.answers import SCALE_EDGES, ScaleBin, accuracy, accuracy_by_scale, correct
from saccade.metrics.average_precision import Interpolation, average_precision, average_precisions, weighted_map
from saccade.metrics.causal import Interventions, causal_follow, causal_hold, causal_scores, swapped_query
from saccade.metrics.faithfulness import Probability, SweepCurve, blurred, deletion, insertion, random_order
from saccade.metrics.glimpses import at_glimpses, at_random, cells_in_boxes, most_salient
from saccade.metrics.intervals import Interval, Mean, bootstrap, mean_defined, paired_difference
from saccade.metrics.localisation import iou, pointing, selectivity, true_positive_strength
from saccade.metrics.multisets import (
    exact_match,
    macro_f1,
    macro_f1_by_presence,
    macro_f1_interval,
    multiset_counts,
)
from saccade.metrics.points import attention_near, distance, pointing_at
from saccade.metrics.precision_recall import PrCounts, PrCurve, no_counts, pr_auc, pr_counts, pr_curve

if TYPE_CHECKING:
    from saccade.metrics.shells import Accuracy, MeanScore, PrAuc

_SHELLS = ("Accuracy", "MeanScore", "PrAuc")

__all__ = [
    "SCALE_EDGES",
    "Accuracy",
    "Interpolation",
    "Interval",
    "Interventions",
    "Mean",
    "MeanScore",
    "PrAuc",
    "PrCounts",
    "PrCurve",
    "Probability",
    "ScaleBin",
    "SweepCurve",
    "accuracy",
    "accuracy_by_scale",
    "at_glimpses",
    "at_random",
    "attention_near",
    "average_precision",
    "average_precisions",
    "baselines",
    "blurred",
    "bootstrap",
    "causal_follow",
    "causal_hold",
    "causal_scores",
    "cells_in_boxes",
    "correct",
    "deletion",
    "distance",
    "exact_match",
    "insertion",
    "iou",
    "macro_f1",
    "macro_f1_by_presence",
    "macro_f1_interval",
    "mean_defined",
    "most_salient",
    "multiset_counts",
    "no_counts",
    "paired_difference",
    "pointing",
    "pointing_at",
    "pr_auc",
    "pr_counts",
    "pr_curve",
    "random_order",
    "selectivity",
    "swapped_query",
    "true_positive_strength",
    "weighted_map",
]


def __getattr__(name: str) -> Any:
    if name in _SHELLS:
        from saccade.metrics import shells

        return getattr(shells, name)
    raise AttributeError(f"module 'saccade.metrics' has no attribute '{name}'")
