"""Resolves the phases of a recipe for a task: number of steps, losses, and the metric for model selection.

Everything is read before the first step, so that a mistake in the last phase is found before the first begins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from saccade.engine.learner import Learner
from saccade.engine.phases import statistics_names, trainable_names
from saccade.engine.protocol import Trainable
from saccade.engine.recipe import Phase, Recipe
from saccade.engine.validation import with_known_metric


class PhasePlans(NamedTuple):
    """The phases of a run, checked."""

    epoch: int | None
    """Steps of one pass over the data; None: it has no end."""
    phases: list[Phase]
    """As the recipe says, with ``score`` read as the metric that the task puts first."""
    losses: list[Any]
    """What `Trainable.phase_loss` gave for each."""


def phase_plans(task: Trainable, recipe: Recipe, learner: Learner) -> PhasePlans:
    """The plans of ``recipe`` for ``task``, whose model ``learner`` trains.

    Raises:
        ConfigError: a phase cannot be trained, taught or chosen by as the recipe says.
    """
    names = [name for name, _ in learner.model.named_parameters()]
    epoch = task.steps_per_epoch(recipe.batch_size)
    losses = []
    for phase in recipe.phases:
        learning = trainable_names(phase, names, statistics_names(learner))
        phase.total_steps(epoch)
        losses.append(task.phase_loss(phase, learning))
    # After the losses: a task may measure what these teach.
    phases = [with_known_metric(phase, task.metric_names()) for phase in recipe.phases]
    return PhasePlans(epoch, phases, losses)
