"""Starts a phase: which parameters are trained, which statistics are frozen, and the optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from saccade.engine.learner import Learner
from saccade.engine.recipe import OptimizerSpec, Phase
from saccade.errors import ConfigError, nearest


def fits(name: str, patterns: Sequence[str]) -> bool:
    """Whether the name of a parameter fits one of the patterns, as in ``backbone.*``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def check_patterns(patterns: Sequence[str], names: Sequence[str], *, where: str) -> None:
    """Refuse a pattern that fits none of the names."""
    for pattern in patterns:
        if not any(fits(name, (pattern,)) for name in names):
            heads = {name.split(".")[0] + (".*" if "." in name else "") for name in names}
            raise ConfigError(f"{where}: the pattern '{pattern}' fits no parameter; {nearest(pattern, heads)}")


def trainable_names(phase: Phase, names: Sequence[str], statistics: Sequence[str] = ()) -> list[str]:
    """The names that ``phase`` trains, in order; a pattern that fits neither these nor ``statistics`` is an error."""
    check_patterns((*phase.train, *phase.freeze), [*names, *statistics], where=f"phase '{phase.name}'")
    chosen = [name for name in names if _learns(name, phase)]
    if not chosen:
        raise ConfigError(f"phase '{phase.name}': everything is frozen; widen 'train' or shorten 'freeze'")
    return chosen


def statistics_names(learner: Learner) -> list[str]:
    """The names of running statistics, which a phase may freeze by themselves, as in ``backbone.*.running_*``."""
    return [name for name, _ in learner.model.named_buffers() if name.rpartition(".")[2].startswith("running_")]


def apply_phase(learner: Learner, phase: Phase) -> dict[str, nn.Parameter]:
    """Set requires_grad by the phase's patterns and return the learning parameters by name."""
    parameters = dict(learner.model.named_parameters())
    chosen = set(trainable_names(phase, list(parameters), statistics_names(learner)))
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
