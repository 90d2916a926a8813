"""R restarts of a model, trained side by side as one stacked model under ``vmap``.

Every parameter and buffer gets a leading replica axis and keeps its name, so phases, optimisers and checkpoints treat a
stack like any model. Losses are summed, which gives each replica its own gradient; the norm is taken and clipped per
replica.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from saccade.engine.recipe import Select
from saccade.engine.step import Learner
from saccade.errors import ConfigError

if TYPE_CHECKING:
    from saccade.tasks.task import Task

Metrics = dict[str, float]


def compare_replicas(metrics: list[Metrics], select: Select | None) -> tuple[int, Metrics, dict[str, list[float]]]:
    """The replica that leads by ``select``, the metrics of the stack, and those of all side by side.

    The metrics of a stack are means over the replicas that have a value, with the spread as ``name_std``. A NaN never
    leads unless all are, and stands for a value that a replica does not have.

    >>> compare_replicas([{"accuracy": 0.5}, {"accuracy": 1.0}], Select())[:2]
    (1, {'accuracy': 0.75, 'accuracy_std': 0.3535533905932738})
    """
    winner = 0
    for index in range(1, len(metrics)):
        if select is not None and select.beats(metrics[index], metrics[winner]):
            winner = index
    values: Metrics = {}
    names = dict.fromkeys(name for one in metrics for name in one)
    for name in names:
        numbers = [one[name] for one in metrics if name in one]
        values[name] = statistics.fmean(numbers)
        if len(numbers) > 1:
            values[f"{name}_std"] = statistics.stdev(numbers) if all(map(math.isfinite, numbers)) else math.nan
    return winner, values, {name: [one.get(name, math.nan) for one in metrics] for name in names}


class ReplicaStack(Learner):
    """Several models of one architecture, trained side by side."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        layers = models[0].modules()
        recurrent = next((layer for layer in layers if isinstance(layer, (nn.RNNBase, nn.LSTMCell))), None)
        if recurrent is not None:
            names = f"{type(models[0]).__name__} has a layer {type(recurrent).__name__}"
            mend = "set replicas: 1, and train several seeds with `seeds`"
            raise ConfigError(f"replicas: {names}, which torch cannot train as a stack; {mend}")
        super().__init__(_stacked(models))
        self.replicas = len(models)
        # Hidden from registration in a tuple: it lends its structure and flags, its own tensors are never used.
        self._skeleton = (Learner(copy.deepcopy(models[0]).to("meta")),)
        self._spare = (copy.deepcopy(models[0]),)

    @property
    def body(self) -> nn.Module:
        """The skeleton that ``functional_call`` runs."""
        return self._skeleton[0].model

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        """Raw outputs of all replicas on the same inputs, each (R,B,…)."""

        def one(state: dict[str, Tensor]) -> dict[str, Tensor]:
            named = {f"model.{name}": tensor for name, tensor in state.items()}
            raw: dict[str, Tensor] = functional_call(self._skeleton[0], named, (), inputs)
            return raw

        return vmap(one, randomness="different")(_tensors(self.model))

    def losses(self, task: Task, raw: dict[str, Tensor], batch: Any, loss: object) -> dict[str, Tensor]:
        """One of each per replica: (R,)."""
        return vmap(lambda one: task.loss(one, batch, loss), randomness="different")(raw)

    def gradient_norms(self, gradients: list[Tensor]) -> Tensor:
        """Within each replica: (P,R)."""
        return torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients])

    def scale_gradients(self, gradients: list[Tensor], factor: Tensor) -> None:
        """By the factor (R,) of its replica."""
        self.scale_each(gradients, factor.expand(len(gradients), -1))

    def scale_each(self, gradients: list[Tensor], factor: Tensor) -> None:
        """By the factor (P,R) of its parameter and replica."""
        factors = [column.view(-1, *[1] * (gradient.dim() - 1)) for column, gradient in zip(factor, gradients)]
        torch._foreach_mul_(gradients, factors)

    def replica(self, index: int) -> nn.Module:
        """A plain model holding a copy of replica ``index``; the next call overwrites it."""
        model = self._spare[0]
        stacked = _tensors(self.model)
        for name, tensor in _tensors(model).items():
            tensor.data = stacked[name][index].detach().clone()
        return model


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers under all their names: a tied parameter appears under each of its own."""
    parameters = model.named_parameters(remove_duplicate=False)
    return {**dict(parameters), **dict(model.named_buffers(remove_duplicate=False))}


def _stacked(models: Sequence[nn.Module]) -> nn.Module:
    """A copy of the first model whose parameters and buffers hold those of all, (R,…); never called itself."""
    everything = [_tensors(model) for model in models]
    result = copy.deepcopy(models[0])
    stacks: dict[int, Tensor] = {}  # by identity of the first model's tensor, so that tied ones stay tied
    for name, first in everything[0].items():
        if id(first) not in stacks:
            stack = torch.stack([tensors[name].detach() for tensors in everything])  # (R,…)
            stacks[id(first)] = nn.Parameter(stack) if isinstance(first, nn.Parameter) else stack
        prefix, _, leaf = name.rpartition(".")
        owner = result.get_submodule(prefix)
        table = owner._parameters if isinstance(first, nn.Parameter) else owner._buffers
        table[leaf] = stacks[id(first)]  # type: ignore[assignment]  # a stack stands for a parameter
    return result
