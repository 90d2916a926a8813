"""The model as the engine trains it: one, or R restarts as one stacked model under ``vmap`` with the same interface.

Fabric autocasts ``forward`` only (a method marked as a forward method bypasses precision on a single device), so
`forward_raw` is called from the ``forward`` of a thin wrapper.

Every parameter and buffer gets a leading replica axis and keeps its name, so phases, optimisers and checkpoints
treat a stack like any model. Replicas never mix: losses are summed, which gives each its own gradient, and the
gradient norm is taken and clipped per replica.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from saccade.engine.protocol import Trainable
from saccade.errors import ConfigError


class Learner(nn.Module):
    """One model under training.

    Args:
        model: what is trained.
        compiled: fuse its passes with ``torch.compile``; its own ``forward_raw`` stays as it is.

    Attributes:
        model: bears the trained parameters under their own names.
        body: the module tree whose train/eval flags count in the forward pass.
        replicas: length of the leading axis of losses and gradient norms.
    """

    def __init__(self, model: nn.Module, *, compiled: bool = False) -> None:
        super().__init__()
        self.model = model
        self.replicas = 1
        # every model has it, see Trainable
        plain: Callable[..., dict[str, Tensor]] = model.forward_raw  # type: ignore[assignment]
        self._forward_raw = torch.compile(plain, dynamic=False) if compiled else plain

    @property
    def body(self) -> nn.Module:
        """The module tree whose train/eval flags count in the forward pass."""
        return self.model

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        """What the model's ``forward_raw`` says."""
        return self._forward_raw(**inputs)

    def losses(self, task: Trainable, raw: dict[str, Tensor], batch: object, loss: object) -> dict[str, Tensor]:
        """The task's scalars, each as a vector over replicas: (R,)."""
        return {key: value.reshape(1) for key, value in task.loss(raw, batch, loss).items()}

    def gradient_norms(self, gradients: list[Tensor]) -> Tensor:
        """Norm of every parameter's gradient: (P,R)."""
        return torch.stack(torch._foreach_norm(gradients)).unsqueeze(1)

    def scale_gradients(self, gradients: list[Tensor], factor: Tensor) -> None:
        """Multiply the gradients of each replica by its entry of ``factor`` (R,)."""
        torch._foreach_mul_(gradients, factor[0])

    def scale_each(self, gradients: list[Tensor], factor: Tensor) -> None:
        """Multiply the gradient of each parameter and replica by its entry of ``factor`` (P,R)."""
        torch._foreach_mul_(gradients, list(factor[:, 0].unbind()))

    def replica(self, index: int) -> nn.Module:
        """A plain model with the weights of replica ``index``."""
        return self.model


class ReplicaStack(Learner):
    """Several models of one architecture, trained side by side."""

    def __init__(self, models: list[nn.Module]) -> None:
        _refuse_recurrent(models[0])
        super().__init__(_stacked(models))
        self.replicas = len(models)
        # Hidden from registration in a tuple: it lends its structure and flags, its own tensors are never used.
        self._skeleton = (copy.deepcopy(models[0]).to("meta"),)
        self._spare = (copy.deepcopy(models[0]),)

    @property
    def body(self) -> nn.Module:
        """The skeleton that ``functional_call`` runs."""
        return self._skeleton[0]

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        """Raw outputs of all replicas on the same inputs, each (R,B,…)."""
        skeleton = self.body
        tensors = _tensors(self.model)

        def one(state: dict[str, Tensor]) -> dict[str, Tensor]:
            named = {f"model.{name}": tensor for name, tensor in state.items()}
            raw: dict[str, Tensor] = functional_call(_RawCall(skeleton), named, (), inputs)
            return raw

        return vmap(one, randomness="different")(tensors)

    def losses(self, task: Trainable, raw: dict[str, Tensor], batch: object, loss: object) -> dict[str, Tensor]:
        """The task's scalars, one per replica: (R,)."""
        return vmap(lambda one: task.loss(one, batch, loss), randomness="different")(raw)

    def gradient_norms(self, gradients: list[Tensor]) -> Tensor:
        """Norm of every parameter's gradient within each replica: (P,R)."""
        return torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients])

    def scale_gradients(self, gradients: list[Tensor], factor: Tensor) -> None:
        """Multiply the gradients of each replica by its entry of ``factor`` (R,)."""
        for gradient in gradients:
            gradient.mul_(factor.view(-1, *[1] * (gradient.dim() - 1)))

    def scale_each(self, gradients: list[Tensor], factor: Tensor) -> None:
        """Multiply the gradient of each parameter and replica by its entry of ``factor`` (P,R)."""
        factors = [each.view(-1, *[1] * (gradient.dim() - 1)) for each, gradient in zip(factor, gradients)]
        torch._foreach_mul_(gradients, factors)

    def replica(self, index: int) -> nn.Module:
        """A plain model holding a copy of replica ``index``; the next call overwrites it."""
        model = self._spare[0]
        stacked = _tensors(self.model)
        for name, tensor in _tensors(model).items():
            tensor.data = stacked[name][index].detach().clone()
        return model


def _refuse_recurrent(model: nn.Module) -> None:
    """Refuse layers that torch cannot run under ``vmap``."""
    found = next((layer for layer in model.modules() if isinstance(layer, (nn.RNNBase, nn.LSTMCell))), None)
    if found is not None:
        raise ConfigError(
            f"replicas: {type(model).__name__} has a layer {type(found).__name__}, which torch cannot train as a "
            "stack; set replicas: 1, and train several seeds with `seeds`"
        )


class _RawCall(nn.Module):
    """Makes ``forward_raw`` the thing that ``functional_call`` calls."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        # every model has it, see Trainable
        raw: dict[str, Tensor] = self.model.forward_raw(**inputs)  # type: ignore[operator]
        return raw


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers under all their names: a tied parameter appears under each of its own."""
    parameters = model.named_parameters(remove_duplicate=False)
    return {**dict(parameters), **dict(model.named_buffers(remove_duplicate=False))}


def _stacked(models: list[nn.Module]) -> nn.Module:
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
