"""The model as the engine trains it: a single model with the same interface as a stack of replicas.

Fabric autocasts ``forward`` only (a method marked as a forward method bypasses precision on a single device), so
`forward_raw` is called from the ``forward`` of a thin wrapper.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from saccade.engine.protocol import Trainable


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
