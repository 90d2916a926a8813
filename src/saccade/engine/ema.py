"""A moving average of the weights, which is what gets validated and saved when a recipe asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


class WeightAverage:
    """Exponential average with decay ``min(decay, (1 + n) / (10 + n))``, so that the first steps do not linger."""

    def __init__(self, parameters: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.parameters = {name: value for name, value in parameters.items() if value.is_floating_point()}
        self.shadow = {name: value.detach().clone() for name, value in self.parameters.items()}
        self.updates = torch.zeros((), device=next(iter(self.shadow.values())).device)

    @torch.no_grad()
    def update(self) -> None:
        """Move the average towards the present weights; all on the device, fit for a CUDA graph."""
        share = torch.clamp(9 / (10 + self.updates), min=1 - self.decay)  # 1 − decay of this update
        shadow = list(self.shadow.values())
        change = torch._foreach_sub([value.detach() for value in self.parameters.values()], shadow)
        torch._foreach_mul_(change, share)
        torch._foreach_add_(shadow, change)
        self.updates += 1

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The average in place of the weights, for the length of a block."""
        kept = {name: value.detach().clone() for name, value in self.parameters.items()}
        self._write(self.shadow)
        try:
            yield
        finally:
            self._write(kept)

    @torch.no_grad()
    def _write(self, values: Mapping[str, Tensor]) -> None:
        for name, parameter in self.parameters.items():
            parameter.copy_(values[name])
