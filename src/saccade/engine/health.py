"""When training breaks: noticing the first non-finite gradient, and naming the step and layer it came from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from saccade.errors import SaccadeError


class TrainingStopped(SaccadeError):  # noqa: N818 - an outcome more than a mistake
    """Training cannot go on: a loss or gradient is not finite, or a process is gone. The last good state is on disk."""


@dataclass(frozen=True)
class Fault:
    """The first non-finite gradient: at which step, of which parameter, in which replica."""

    step: int
    parameter: str
    replica: int


class GradientWatch:
    """Remembers the first non-finite gradient on the device, so that nothing waits for the host."""

    def __init__(self, device: torch.device) -> None:
        self._first = torch.full((3,), -1, dtype=torch.int64, device=device)  # step, parameter, replica

    def observe(self, norms: Tensor, step: Tensor) -> None:
        """Take note of the gradient norms (P,R) of ``step``."""
        bad = ~torch.isfinite(norms)
        where = bad.flatten().to(torch.int32).argmax()
        now = torch.stack([step, where // norms.shape[1], where % norms.shape[1]])
        is_first = bad.any() & (self._first[0] < 0)
        self._first.copy_(torch.where(is_first, now, self._first))

    def fault(self, names: list[str]) -> Fault | None:
        """What was seen, if anything; waits for the device."""
        step, parameter, replica = self._first.tolist()
        return None if step < 0 else Fault(step, names[parameter], replica)


def origin(model: nn.Module, inputs: dict[str, Tensor]) -> str | None:
    """Where the first non-finite number of a forward pass appears: an input, a parameter or a layer's output."""
    for name, value in inputs.items():
        if not _finite(value):
            return f"the batch itself holds non-finite values in '{name}'"
    for name, parameter in model.named_parameters():
        if not _finite(parameter):
            return f"parameter '{name}' is not finite"
    found: list[str] = []

    names = {module: name for name, module in model.named_modules() if name}

    def watch(module: nn.Module, arguments: object, output: object) -> None:
        if not found and not _finite(output):
            found.append(f"the output of layer '{names[module]}' is the first that is not finite")

    handles = [module.register_forward_hook(watch) for module in names]
    was_training = model.training
    try:
        with torch.no_grad():
            model.eval()  # a diagnosis must not move the statistics
            model.forward_raw(**inputs)  # type: ignore[operator]  # every model has it, see Trainable
    finally:
        model.train(was_training)
        for handle in handles:
            handle.remove()
    return found[0] if found else None


def _finite(value: object) -> bool:
    return not isinstance(value, Tensor) or not value.is_floating_point() or bool(torch.isfinite(value).all())
