"""Validates the replicas, chooses the best one and writes its model folder."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import torch

from saccade.atomic import folder_in_place
from saccade.engine.protocol import Trainable
from saccade.engine.recipe import Select
from saccade.engine.replicas import Learner
from saccade.engine.seeding import isolated_rng

Metrics = dict[str, float]


def measure(task: Trainable, learner: Learner, seed: int, device: torch.device) -> list[Metrics]:
    """The task's metrics of each replica, in eval mode and on a random stream of its own."""
    found = []
    for index in range(learner.replicas):
        model = learner.replica(index).eval()
        with torch.no_grad(), isolated_rng(seed, device):
            found.append({name: float(value) for name, value in task.validate(model).items()})
    return found


def best_replica(found: list[Metrics], select: Select) -> tuple[int, float]:
    """Which replica leads by the metric that decides, and its score; a NaN, or none, never leads unless all are."""
    winner = 0
    for index in range(1, len(found)):
        if select.beats(found[index], found[winner]):
            winner = index
    return winner, found[winner].get(select.metric, math.nan)


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
