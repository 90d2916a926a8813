"""Validates the replicas, chooses the best one and writes its model folder."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from saccade.atomic import folder_in_place
from saccade.engine.learner import Learner
from saccade.engine.protocol import Trainable
from saccade.engine.recipe import Phase
from saccade.engine.seeding import isolated_rng
from saccade.errors import ConfigError, nearest

Metrics = dict[str, float]

SCORE = "score"
"""What a recipe may choose by without knowing the data: whichever metric its task puts first."""


def measure(task: Trainable, learner: Learner, seed: int, device: torch.device) -> list[Metrics]:
    """The task's metrics of each replica, in eval mode and on a random stream of its own."""
    found = []
    for index in range(learner.replicas):
        model = learner.replica(index).eval()
        with torch.no_grad(), isolated_rng(seed, device):
            found.append({name: float(value) for name, value in task.validate(model).items()})
    return found


def with_known_metric(phase: Phase, measured: Sequence[str]) -> Phase:
    """``phase`` with ``score`` read as the first metric ``measured``; one that chooses by what is not is refused."""
    if phase.select is None:
        return phase
    is_named = phase.select.metric != SCORE or SCORE in measured
    select = phase.select if is_named else replace(phase.select, metric=measured[0])
    for metric in (select.metric, select.beside):
        if metric is not None and metric not in measured:
            raise ConfigError(
                f"phase '{phase.name}' selects by '{metric}', which is not measured here: {nearest(metric, measured)}"
            )
    return replace(phase, select=select)


def best_replica(found: list[Metrics], phase: Phase) -> tuple[int, float]:
    """Which replica leads by the phase's metric, and its score; a NaN, or none, never leads unless all are."""
    if phase.select is None:
        raise ValueError(f"phase '{phase.name}' selects nothing")
    winner = 0
    for index in range(1, len(found)):
        if phase.select.beats(found[index], found[winner]):
            winner = index
    return winner, found[winner].get(phase.select.metric, math.nan)


def summary(found: list[Metrics]) -> Metrics:
    """Mean over the replicas that have a value, with the spread as ``name_std`` when there are several.

    >>> summary([{"accuracy": 0.5}, {"accuracy": 1.0}])
    {'accuracy': 0.75, 'accuracy_std': 0.3535533905932738}
    """
    values = {}
    for name in _names(found):
        numbers = [one[name] for one in found if name in one]
        values[name] = statistics.fmean(numbers)
        if len(numbers) > 1:
            values[f"{name}_std"] = statistics.stdev(numbers)
    return values


def by_replica(found: list[Metrics]) -> dict[str, list[float]] | None:
    """The metrics of all replicas side by side, NaN where one has none; None when there is only one."""
    if len(found) == 1:
        return None
    return {name: [one.get(name, math.nan) for one in found] for name in _names(found)}


def _names(found: list[Metrics]) -> list[str]:
    """What any replica has, in the order in which it is met."""
    return list(dict.fromkeys(name for one in found for name in one))


def publish_model(task: Trainable, learner: Learner, replica: int, folder: Path, facts: dict[str, object]) -> None:
    """Let the task write the model folder beside its place, then put it there as a whole."""
    with folder_in_place(folder) as draft:
        task.save_model(learner.replica(replica), draft, facts)
