"""A moving average of the weights; if a recipe asks for it, the average is validated and saved.

Running statistics of normalisation layers are averaged too: the current ones do not fit the averaged weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


class WeightAverage:
    """Exponential average with decay ``min(decay, (1 + n) / (10 + n))``, so that the first steps do not linger."""

    def __init__(self, state: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.present = {name: value for name, value in state.items() if value.is_floating_point()}
        self.shadow = {name: value.detach().clone() for name, value in self.present.items()}
        self.updates = torch.zeros((), device=next(iter(self.shadow.values())).device)

    @torch.no_grad()
    def update(self) -> None:
        """Move the average towards the present weights; all on the device, fit for a CUDA graph."""
        share = torch.clamp(9 / (10 + self.updates), min=1 - self.decay)  # 1 − decay of this update
        shadow = list(self.shadow.values())
        change = torch._foreach_sub([value.detach() for value in self.present.values()], shadow)
        torch._foreach_mul_(change, share)
        torch._foreach_add_(shadow, change)
        self.updates += 1

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The average in place of the weights, for the length of a block."""
        kept = {name: value.detach().clone() for name, value in self.present.items()}
        self._write(self.shadow)
        try:
            yield
        finally:
            self._write(kept)

    def adopt(self) -> None:
        """Make the average the present weights, and begin the next one from them."""
        self._write(self.shadow)
        self.updates.zero_()

    @torch.no_grad()
    def _write(self, values: Mapping[str, Tensor]) -> None:
        for name, value in self.present.items():
            value.copy_(values[name])
