"""Scores of answers and of attention, with baselines, bounds and confidence.

Plain tensor functions that return one value per picture, (B,), so that the caller can average and split;
NaN means "no such score here" and is counted by every aggregate. Scores of captions take strings, and some are defined
for a whole set only.

``MapScorer`` scores maps batch by batch, beside baselines and bounds, from any tool; ``summarise`` puts what was
measured into one dictionary of plain numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.metrics.answers.accuracy import SCALE_EDGES, ScaleBin, accuracy, accuracy_by_scale, correct
    from saccade.metrics.answers.average_precision import (
        Interpolation,
        average_precision,
        average_precisions,
        weighted_map,
    )
    from saccade.metrics.answers.multisets import (
        exact_match,
        macro_f1,
        macro_f1_by_presence,
        macro_f1_interval,
        multiset_counts,
    )
    from saccade.metrics.evaluation import Evaluation
    from saccade.metrics.intervals import (
        Interval,
        Mean,
        jackknife_interval,
        mean_defined,
        mean_interval,
        paired_difference,
    )
    from saccade.metrics.maps import baselines
    from saccade.metrics.maps.causal import (
        CausalAnswers,
        Interventions,
        causal_follow,
        causal_hold,
        causal_scores,
        scores_of_answers,
        swapped_query,
    )
    from saccade.metrics.maps.effects import (
        answer_shift,
        cause_pairs,
        cause_top,
        misplaced,
        object_effects,
        off_objects,
    )
    from saccade.metrics.maps.faithfulness import (
        Probability,
        SweepCurve,
        blurred,
        deletion,
        deletion_and_insertion,
        insertion,
        random_order,
    )
    from saccade.metrics.maps.fixations import PointScorer, auc_judd, auc_shuffled, nss
    from saccade.metrics.maps.glimpses import at_glimpses, at_random, cells_in_boxes, most_salient
    from saccade.metrics.maps.grids import Grid, Grids, grids_of
    from saccade.metrics.maps.intervention import Moved, map_follow, map_hold, map_specific, map_turn
    from saccade.metrics.maps.localisation import iou, pointing, selectivity, true_positive_strength
    from saccade.metrics.maps.mass import mass_on, total_variation
    from saccade.metrics.maps.points import attention_near, distance, pointing_at
    from saccade.metrics.maps.precision_recall import PrCounts, PrCurve, no_counts, pr_auc, pr_counts, pr_curve
    from saccade.metrics.maps.scorer import Baseline, MapScorer, MapScores, Truth
    from saccade.metrics.maps.word_maps import WordScores, uniform_word_strength, word_strength, words_among
    from saccade.metrics.summary import summarise
    from saccade.metrics.text.bleu import bleu, bleu_intervals
    from saccade.metrics.text.bleu_ids import bleu_of_words
    from saccade.metrics.text.cider import cider, cider_each
    from saccade.metrics.text.cider_ids import NGramRarity, cider_of_words
    from saccade.metrics.text.meteor import meteor_lite
    from saccade.metrics.text.meteor_ids import MeteorWords, meteor_of_words
    from saccade.metrics.text.meteor_jar import meteor_jar, meteor_missing
    from saccade.metrics.text.rouge import rouge_l, rouge_l_each
    from saccade.metrics.text.word_causal import WordFollow, same_caption, word_follow
else:
    from saccade.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names

__all__ = [
    "SCALE_EDGES",
    "Baseline",
    "CausalAnswers",
    "Evaluation",
    "Grid",
    "Grids",
    "Interpolation",
    "Interval",
    "Interventions",
    "MapScorer",
    "MapScores",
    "Mean",
    "MeteorWords",
    "Moved",
    "NGramRarity",
    "PointScorer",
    "PrCounts",
    "PrCurve",
    "Probability",
    "ScaleBin",
    "SweepCurve",
    "Truth",
    "WordFollow",
    "WordScores",
    "accuracy",
    "accuracy_by_scale",
    "answer_shift",
    "at_glimpses",
    "at_random",
    "attention_near",
    "auc_judd",
    "auc_shuffled",
    "average_precision",
    "average_precisions",
    "baselines",
    "bleu",
    "bleu_intervals",
    "bleu_of_words",
    "blurred",
    "causal_follow",
    "causal_hold",
    "causal_scores",
    "cause_pairs",
    "cause_top",
    "cells_in_boxes",
    "cider",
    "cider_each",
    "cider_of_words",
    "correct",
    "deletion",
    "deletion_and_insertion",
    "distance",
    "exact_match",
    "grids_of",
    "insertion",
    "iou",
    "jackknife_interval",
    "macro_f1",
    "macro_f1_by_presence",
    "macro_f1_interval",
    "map_follow",
    "map_hold",
    "map_specific",
    "map_turn",
    "mass_on",
    "mean_defined",
    "mean_interval",
    "meteor_jar",
    "meteor_lite",
    "meteor_missing",
    "meteor_of_words",
    "misplaced",
    "most_salient",
    "multiset_counts",
    "no_counts",
    "nss",
    "object_effects",
    "off_objects",
    "paired_difference",
    "pointing",
    "pointing_at",
    "pr_auc",
    "pr_counts",
    "pr_curve",
    "random_order",
    "rouge_l",
    "rouge_l_each",
    "same_caption",
    "scores_of_answers",
    "selectivity",
    "summarise",
    "swapped_query",
    "total_variation",
    "true_positive_strength",
    "uniform_word_strength",
    "weighted_map",
    "word_follow",
    "word_strength",
    "words_among",
]
