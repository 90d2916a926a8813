"""What a run trains: the model or a stack of them; of each phase its loss and metric, what is frozen, the optimiser.

Everything is read before the first step, so that a mistake in the last phase is found before the first begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from saccade.engine.recipe import OptimizerSpec, Phase, Recipe
from saccade.engine.replicas import ReplicaStack
from saccade.engine.step import Learner
from saccade.errors import ConfigError, nearest

if TYPE_CHECKING:
    from saccade.tasks.task import Task

SCORE = "score"  # What a recipe may choose by without knowing the data: whichever metric its task puts first.


def make_learner(task: Task, recipe: Recipe, device: torch.device) -> Learner:
    """What ``recipe`` trains of the task, on the device: its model, or several of them as a stack."""
    if recipe.replicas > 1:
        models = [task.new_model(recipe.seed + index) for index in range(recipe.replicas)]
        return ReplicaStack(models).to(device)
    if recipe.channels_last:
        task.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch types no format alone
    return Learner(task.model, compiled=recipe.compile and device.type == "cuda").to(device)


def plan_phases(task: Task, recipe: Recipe, learner: Learner) -> tuple[int | None, list[Phase], list[Any]]:
    """Steps of one pass over the data (None: it has no end), the phases of ``recipe``, and the loss of each."""
    epoch = task.steps_per_epoch(recipe.batch_size)
    losses = []
    for phase in recipe.phases:
        phase.total_steps(epoch)
        if phase.refit is not None and not task.can_refit:
            mend = "set phases.N.refit to null and phases.N.train to ['*']"
            raise ConfigError(f"phase '{phase.name}': refit: model '{task.architecture}' cannot be fitted so; {mend}")
        losses.append(task.phase_loss(phase, trainable_names(phase, learner)))
    # After the losses: a task may measure what these teach.
    phases = [with_known_metric(phase, task.metric_names()) for phase in recipe.phases]
    return epoch, phases, losses


def with_known_metric(phase: Phase, measured: Sequence[str]) -> Phase:
    """``phase`` with ``score`` read as the first metric ``measured``; a metric that is not measured is refused."""
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


def fits(name: str, patterns: Sequence[str]) -> bool:
    """Whether the name of a parameter fits one of the patterns, as in ``backbone.*``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def check_patterns(patterns: Sequence[str], names: Sequence[str], *, where: str) -> None:
    """Refuse a pattern that fits none of the names."""
    for pattern in patterns:
        if not any(fits(name, (pattern,)) for name in names):
            heads = {name.split(".")[0] + (".*" if "." in name else "") for name in names}
            raise ConfigError(f"{where}: the pattern '{pattern}' fits no parameter; {nearest(pattern, heads)}")


def trainable_names(phase: Phase, learner: Learner) -> list[str]:
    """The names of the parameters that ``phase`` trains, in order; a pattern that fits nothing is an error.

    Patterns may also fit running statistics, as in ``backbone.*.running_*``, to freeze them.
    """
    names = [name for name, _ in learner.model.named_parameters()]
    buffers = [name for name, _ in learner.model.named_buffers()]
    statistics = [name for name in buffers if name.rpartition(".")[2].startswith("running_")]
    check_patterns((*phase.train, *phase.freeze), [*names, *statistics], where=f"phase '{phase.name}'")
    chosen = [name for name in names if _learns(name, phase)]
    if not chosen:
        raise ConfigError(f"phase '{phase.name}': everything is frozen; widen 'train' or shorten 'freeze'")
    return chosen


def apply_phase(learner: Learner, phase: Phase) -> dict[str, nn.Parameter]:
    """Set requires_grad by the phase's patterns and return the learning parameters by name."""
    parameters = dict(learner.model.named_parameters())
    chosen = set(trainable_names(phase, learner))
    for name, parameter in parameters.items():
        parameter.requires_grad_(name in chosen)
        parameter.grad = None
    return {name: parameter for name, parameter in parameters.items() if name in chosen}


def train_mode(learner: Learner, phase: Phase) -> None:
    """Training mode, except for normalisation layers whose statistics the phase freezes."""
    learner.body.train()
    if not phase.freeze_statistics:
        return
    for prefix, module in learner.body.named_modules():
        if isinstance(module, _NormBase) and not _learns(f"{prefix}.running_mean".lstrip("."), phase):
            module.eval()


def build_optimizer(
    spec: OptimizerSpec, parameters: Sequence[nn.Parameter], *, capturable: bool = False
) -> torch.optim.Optimizer:
    """The optimiser of a phase; ``capturable`` makes its step fit for a CUDA graph, learning rate included."""
    lr: Any = torch.tensor(spec.lr, device=parameters[0].device) if capturable else spec.lr
    common: dict[str, Any] = {"lr": lr, "weight_decay": spec.weight_decay}
    if spec.name != "sgd":
        common["eps"] = 1e-8 if spec.eps is None else spec.eps
        common["capturable"] = capturable
    if spec.name == "sgd":
        return torch.optim.SGD(
            parameters, momentum=spec.momentum, nesterov=spec.nesterov, fused=capturable or None, **common
        )
    if spec.name == "rmsprop":
        return torch.optim.RMSprop(parameters, alpha=spec.alpha, momentum=spec.momentum, **common)
    kind = torch.optim.AdamW if spec.name == "adamw" else torch.optim.Adam
    return kind(parameters, betas=spec.betas, fused=capturable or None, **common)


def _learns(name: str, phase: Phase) -> bool:
    return fits(name, phase.train) and not fits(name, phase.freeze)
