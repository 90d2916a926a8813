"""Scores of answers and of attention, with baselines, bounds and confidence.

Plain tensor functions that return one value per picture, (B,), so that the caller can average and split; NaN means "no
such score here" and is counted by every aggregate. Scores of captions take strings.

``MapScorer`` scores maps batch by batch, beside baselines and bounds, from any tool; ``summarise`` puts what was
measured into one dictionary of plain numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.metrics.intervals import mean_interval as mean_interval
    from saccade.metrics.intervals import paired_difference as paired_difference
    from saccade.metrics.labels import accuracy_by_scale as accuracy_by_scale
    from saccade.metrics.maps.baselines import Grid as Grid
    from saccade.metrics.maps.baselines import Grids as Grids
    from saccade.metrics.maps.faithfulness import deletion_and_insertion as deletion_and_insertion
    from saccade.metrics.maps.interventions import Moved as Moved
    from saccade.metrics.maps.interventions import causal_follow as causal_follow
    from saccade.metrics.maps.interventions import cause_pairs as cause_pairs
    from saccade.metrics.maps.interventions import cause_top as cause_top
    from saccade.metrics.maps.interventions import map_follow as map_follow
    from saccade.metrics.maps.interventions import map_hold as map_hold
    from saccade.metrics.maps.interventions import map_specific as map_specific
    from saccade.metrics.maps.interventions import map_turn as map_turn
    from saccade.metrics.maps.interventions import misplaced as misplaced
    from saccade.metrics.maps.interventions import object_effects as object_effects
    from saccade.metrics.maps.interventions import off_objects as off_objects
    from saccade.metrics.maps.localisation import iou as iou
    from saccade.metrics.maps.localisation import mass_on as mass_on
    from saccade.metrics.maps.localisation import pointing as pointing
    from saccade.metrics.maps.localisation import pr_counts as pr_counts
    from saccade.metrics.maps.localisation import selectivity as selectivity
    from saccade.metrics.maps.localisation import total_variation as total_variation
    from saccade.metrics.maps.localisation import true_positive_strength as true_positive_strength
    from saccade.metrics.maps.points import PointScorer as PointScorer
    from saccade.metrics.maps.scorer import Baseline as Baseline
    from saccade.metrics.maps.scorer import MapScorer as MapScorer
    from saccade.metrics.maps.scorer import MapScores as MapScores
    from saccade.metrics.result import summarise as summarise
    from saccade.metrics.sets import exact_match as exact_match
    from saccade.metrics.sets import macro_f1 as macro_f1
    from saccade.metrics.sets import weighted_map as weighted_map
    from saccade.metrics.text.meteor import meteor_jar as meteor_jar
    from saccade.metrics.text.meteor import meteor_lite as meteor_lite
    from saccade.metrics.text.ngrams import bleu as bleu
    from saccade.metrics.text.ngrams import cider as cider
    from saccade.metrics.text.ngrams import rouge_l as rouge_l
else:
    from saccade import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names
