"""A verdict on a model in one line: is it better than guessing, what does it depend on, and do its maps beat chance?

Each part is a paired comparison on the same examples, with the picture as the unit and a 95 % interval. A part that the
data cannot decide says so, or is left out.

Chance, for a map, is the best of the maps that do not look at the picture: even, the centre of the picture, the centre
of the object's box, and where the part usually lies (:data:`BLIND`). A model must beat the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from saccade.metrics.evaluation import Part, Verdict
from saccade.metrics.evidence_swap import EvidenceReliance
from saccade.metrics.intervals import Interval, mean_defined, paired_difference
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.summary import without_nan

GUESSES = {
    "commonest_label": "always answering the commonest label",
    "training_prior": "always answering what is commonest in training",
    "training_prior_by_query": "guessing from the question",
}
"""Baselines of answers, in words."""
BLIND = {
    "uniform": "an even map",
    "centre_gaussian": "the centre of the picture",
    "box_centre": "the centre of the box",
    "box_centre_exact": "the centre of the box",
    "part_prior": "where the part usually is",
    "part_prior_exact": "where the part usually is",
}
"""Baselines of maps that do not look at the picture, in words."""
POINTING = ("pointing_at", "pointing")
"""What a map is judged by: whether its peak lies near the click, else whether it lies on the evidence."""


def against_guessing(right: Tensor, guesses: Mapping[str, Tensor], pictures: Tensor) -> Part:
    """A model beside the best of its guesses; nothing without any.

    Args:
        right: 1 where the model is right (N,).
        guesses: baseline → 1 where it is right (N,).
        pictures: id of each example's picture (N,).

    Returns:
        ``says``, ``accuracy``, ``guess`` (its name), ``guess_accuracy``, ``difference`` and its ``interval``.
    """
    if not guesses or not len(right):
        return {}
    name = max(guesses, key=lambda each: mean_defined(guesses[each]).mean)
    own, guess = mean_defined(right).mean, mean_defined(guesses[name]).mean
    found = paired_difference(right.double(), guesses[name].double(), pictures)
    beginning = f"{100 * own:.1f} % against {100 * guess:.1f} % by {GUESSES.get(name, name.replace('_', ' '))}"
    return {
        "says": f"{beginning}: {_told(found)}",
        "accuracy": own,
        "guess": name,
        "guess_accuracy": guess,
        "difference": found.mean,
        "interval": [found.low, found.high],
    }


def _told(found: Interval) -> str:
    if math.isnan(found.low):
        return "too few pictures to tell a difference"
    ends = f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"
    if found.low > 0:
        return f"it beats guessing by {100 * found.mean:.1f} points ({ends})"
    if found.high < 0:
        return f"it has lost to guessing ({100 * found.mean:+.1f} points, {ends})"
    return f"no difference from guessing detected ({ends} points)"


def against_chance(maps: MapScorer, among: Tensor | None = None) -> Part:
    """Maps beside the best of the blind ones; nothing where no map could be scored.

    Args:
        maps: what was scored.
        among: bool (N,): only these maps, such as those of one question; None: all of them.

    Returns:
        ``says``, ``score`` (its name), ``value``, ``chance`` (name of the baseline), ``chance_value``, ``difference``
        and its ``interval``.
    """
    among = torch.ones(len(maps.groups), dtype=torch.bool) if among is None else among
    own = _only(maps.total.values(), among)
    for score in POINTING:
        rivals = {name: _only(maps.baselines[name].values(), among) for name in BLIND if name in maps.baselines}
        held = {name: values[score] for name, values in rivals.items() if score in values}
        held = {name: values for name, values in held.items() if not bool(values.isnan().all())}
        if score in own and not bool(own[score].isnan().all()) and held:
            break
    else:
        return {}
    name = max(held, key=lambda each: mean_defined(held[each]).mean)
    value, chance = mean_defined(own[score]).mean, mean_defined(held[name]).mean
    found = paired_difference(own[score], held[name], maps.groups[among])
    if math.isnan(found.low):
        return {}
    rival = f"{100 * chance:.1f} % by {BLIND[name]}, the best blind map"
    where = "near the click" if score == "pointing_at" else "on the evidence"
    ends = f"{100 * found.low:+.1f} to {100 * found.high:+.1f} points"
    if found.low > 0:
        how = f"{value / chance:.1f} × as often as by chance" if chance > 0 else "more often than by chance"
    else:
        how = "less often than by chance" if found.high < 0 else "no more often than by chance, as far as can be told"
    return {
        "says": f"its maps peak {where} in {100 * value:.1f} % of cases, {how} ({rival}; {ends})",
        "score": score,
        "value": value,
        "chance": name,
        "chance_value": chance,
        "difference": found.mean,
        "interval": [found.low, found.high],
    }


def _only(values: Mapping[str, Tensor], among: Tensor) -> dict[str, Tensor]:
    """Of each score (N,) the values where ``among`` (N,) is True."""
    return {name: each[among] for name, each in values.items()}


def beside_blind_maps(maps: MapScorer, score: str) -> dict[str, Part]:
    """Every blind map: its ``value`` by ``score``, and how much more the model's maps have, with its interval."""
    own = maps.total.values()[score]
    found: dict[str, Part] = {}
    for name in BLIND:
        blind = maps.baselines[name].values().get(score) if name in maps.baselines else None
        if blind is not None and not bool(blind.isnan().all()):
            less = paired_difference(own, blind, maps.groups)
            value = mean_defined(blind).mean
            found[name] = {"value": value, "difference": less.mean, "interval": [less.low, less.high]}
    return found


def joined(parts: Iterable[Part | Part]) -> str:
    """What all parts say, in one line."""
    return "; ".join(each["says"] for each in parts if each.get("says"))


def verdict(
    right: Tensor,
    guesses: Mapping[str, Tensor],
    pictures: Tensor,
    *,
    maps: MapScorer | None = None,
    rests_on: EvidenceReliance | None = None,
) -> Verdict:
    """``verdict``, the sentence, and what it is made of: ``against`` and, where evidence is known, ``rests_on``."""
    parts = {"answers": against_guessing(right, guesses, pictures)}
    rests: Part = {} if rests_on is None else rests_on.summary()
    if maps is not None:
        parts["maps"] = against_chance(maps)
    said = joined([parts["answers"], rests, *([parts["maps"]] if "maps" in parts else [])])
    found: Verdict = {"verdict": said, "against": {name: part for name, part in parts.items() if part}}
    if rests:
        found["rests_on"] = rests
    return without_nan(found)
