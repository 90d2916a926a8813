"""The model under training, one optimisation step of it, the moving average of its weights, and where it broke.

On CUDA nothing in a step asks the device for a number, so the host runs ahead: scalars are summed on the device,
`drain` reads them every so often, and a non-finite gradient is remembered there too. On the CPU the gradient is checked
before every update. `saccade.engine.cuda_graph` captures the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from saccade.engine.recipe import Phase
from saccade.errors import ConfigError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from saccade.tasks.task import Task

CLIP_EPSILON = 1e-6  # as in torch.nn.utils.clip_grad_norm_
UNTAUGHT = "did not receive grad"  # what DistributedDataParallel says of the step before


class Learner(nn.Module):
    """One model under training; ``compiled`` fuses its passes with ``torch.compile``.

    Fabric autocasts ``forward`` only, so it calls `forward_raw`. Losses and gradient norms have a leading axis of
    ``replicas``.
    """

    def __init__(self, model: nn.Module, *, compiled: bool = False) -> None:
        super().__init__()
        self.model = model
        self.replicas = 1
        plain: Callable[..., dict[str, Tensor]] = model.forward_raw  # type: ignore[assignment]
        self._forward_raw = torch.compile(plain, dynamic=False) if compiled else plain

    @property
    def body(self) -> nn.Module:
        """The module tree whose train/eval flags count in the forward pass."""
        return self.model

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        """What the model's ``forward_raw`` says."""
        return self._forward_raw(**inputs)

    def losses(self, task: Task, raw: dict[str, Tensor], batch: Any, loss: object) -> dict[str, Tensor]:
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


class WeightAverage:
    """A moving average of the weights with decay ``min(decay, (1 + n) / (10 + n))``, so that the first steps go fast.

    Running statistics are averaged too: the current ones do not fit the averaged weights.
    """

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
        weights = {name: value.detach().clone() for name, value in self.present.items()}
        self._write(self.shadow)
        try:
            yield
        finally:
            self._write(weights)

    def adopt(self) -> None:
        """Make the average the present weights, and begin the next one from them."""
        self._write(self.shadow)
        self.updates.zero_()

    @torch.no_grad()
    def _write(self, values: Mapping[str, Tensor]) -> None:
        for name, value in self.present.items():
            value.copy_(values[name])


@dataclass(eq=False)
class TrainStep:
    """Runs optimisation steps of one phase; ``loss`` is what the task built for it."""

    task: Task
    learner: Learner
    phase: Phase
    loss: object
    parameters: dict[str, nn.Parameter]
    fabric: Fabric
    module: Callable[..., dict[str, Tensor]]
    optimizer: torch.optim.Optimizer
    ema: WeightAverage | None = None
    first_step: int = 0

    def __post_init__(self) -> None:
        device = self.fabric.device
        self._options = self.task.forward_options(self.loss)
        self._sums: dict[str, Tensor] = {}
        self._count = 0
        # Of the first non-finite gradient: step, parameter, replica. On the device, so that nothing waits for the host.
        self._first_fault = torch.full((3,), -1, dtype=torch.int64, device=device)
        self._watched: list[str] = []
        self._next = torch.tensor(self.first_step, device=device)  # number of the coming step, counted from 0
        self._check_each = device.type == "cpu"

    def __call__(self, batches: Sequence[Any], lr: float) -> Fault | None:
        """Take one step on the micro-batches; on the CPU a fault is returned before anything is updated."""
        self._set_rate(lr)
        healthy = self._compute(batches)
        self._count += 1
        return None if healthy else self.fault()

    def arrange_buckets(self, batch: Any) -> None:
        """Run a forward and a backward pass that changes nothing, before a run goes on in the middle of a phase.

        After the first backward pass DDP arranges gradients anew in its buckets, and with more than two processes the
        last bits of a sum depend on that.
        """
        before = [buffer.clone() for buffer in self.learner.buffers()]
        values = self.learner.losses(self.task, self._forward(batch), batch, self.loss)
        self.fabric.backward(values["loss"].sum())
        self.optimizer.zero_grad(set_to_none=True)
        for buffer, value in zip(self.learner.buffers(), before):
            buffer.copy_(value)  # statistics of normalisations

    def drain(self) -> dict[str, list[float]]:
        """Means since the last call, one number per replica; waits for the device."""
        count, self._count = max(1, self._count), 0
        if not self._sums:
            return {}
        means = (torch.stack(list(self._sums.values())) / count).tolist()  # (names, R): read at once
        torch._foreach_zero_(list(self._sums.values()))
        return dict(zip(self._sums, means))

    def fault(self) -> Fault | None:
        """The first non-finite gradient of this phase, if there was one; waits for the device."""
        step, parameter, replica = self._first_fault.tolist()
        return None if step < 0 else Fault(step, self._watched[parameter], replica)

    def _set_rate(self, lr: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr

    def _compute(self, batches: Sequence[Any]) -> bool:
        """The step itself; False when the update was withheld because the gradient is not finite."""
        self.optimizer.zero_grad(set_to_none=True)
        for number, batch in enumerate(batches):
            # Between processes gradients are averaged once, in the backward pass of the last micro-batch.
            is_local = self.fabric.world_size > 1 and number < len(batches) - 1
            module: Any = self.module  # Fabric made it
            with self.fabric.no_backward_sync(module) if is_local else nullcontext():
                raw = self._forward(batch)
                values = self.learner.losses(self.task, raw, batch, self.loss)  # each (R,)
                # Replicas share no parameter, so the sum hands each its own gradient.
                self.fabric.backward(values["loss"].sum() / len(batches))
            for name, value in values.items():
                self._record(name, value.detach() / len(batches))
        learning = {name: p.grad for name, p in self.parameters.items() if p.grad is not None}
        self._watched, gradients = list(learning), list(learning.values())
        norms = self.learner.gradient_norms(gradients)  # (P,R)
        total = torch.linalg.vector_norm(norms, dim=0)  # (R,)
        self._record("gradient_norm", total)
        if not self._check_each or not bool(torch.isfinite(total).all()):
            self._note_fault(norms)
            if self._check_each:
                return False
        if self.phase.clip_each is not None:
            factors = _at_most(self.phase.clip_each, norms)  # (P,R)
            self.learner.scale_each(gradients, factors)
            total = torch.linalg.vector_norm(norms * factors, dim=0)  # (R,)
        if self.phase.clip_norm is not None:
            self.learner.scale_gradients(gradients, _at_most(self.phase.clip_norm, total))
        self.optimizer.step()
        if self.ema is not None:
            self.ema.update()
        self._next += 1
        return True

    def _note_fault(self, norms: Tensor) -> None:
        bad = ~torch.isfinite(norms)
        where = bad.flatten().to(torch.int32).argmax()
        now = torch.stack([self._next, where // norms.shape[1], where % norms.shape[1]])
        is_first = bad.any() & (self._first_fault[0] < 0)
        self._first_fault.copy_(torch.where(is_first, now, self._first_fault))

    def _forward(self, batch: Any) -> dict[str, Tensor]:
        try:
            return self.module(**self.task.inputs(batch), **self._options)
        except RuntimeError as error:
            if UNTAUGHT not in str(error):
                raise
            raise ConfigError(
                f"phase '{self.phase.name}': its loss gives some weights no gradient, and several processes wait "
                "for all gradients; use `strategy=ddp_find_unused_parameters_true`"
            ) from error

    def _record(self, name: str, value: Tensor) -> None:
        if name not in self._sums:
            self._sums[name] = torch.zeros_like(value, dtype=torch.float32)
        self._sums[name] += value


def _at_most(limit: float, norms: Tensor) -> Tensor:
    """The factors that bring gradients of these norms down to ``limit``; 1 where they are below it."""
    return (limit / (norms + CLIP_EPSILON)).clamp(max=1.0)


@dataclass(frozen=True)
class Fault:
    """The first non-finite gradient: at which step, of which parameter, in which replica."""

    step: int
    parameter: str
    replica: int

    def describe(self, phase: str, learner: Learner, inputs: Iterable[dict[str, Tensor]]) -> str:
        """Where it broke, and what broke first in a forward pass of the step's ``inputs``, as far as they are known."""
        model = learner.replica(self.replica)
        causes = (origin(model, batch) for batch in inputs)
        cause = next((f"; {cause}" for cause in causes if cause is not None), "")
        which = f" of replica {self.replica}" if learner.replicas > 1 else ""
        return f"step {self.step + 1} (phase '{phase}'): the gradient of '{self.parameter}'{which} is not finite{cause}"


def origin(model: nn.Module, inputs: dict[str, Tensor]) -> str | None:
    """Where the first non-finite number of a forward pass appears: an input, a parameter or a layer's output."""
    for name, value in inputs.items():
        if not _finite(value):
            return f"the batch itself holds non-finite values in '{name}'"
    for name, parameter in model.named_parameters():
        if not _finite(parameter):
            return f"parameter '{name}' is not finite"
    origins: list[str] = []

    names = {module: name for name, module in model.named_modules() if name}

    def watch(module: nn.Module, arguments: object, output: object) -> None:
        if not origins and not _finite(output):
            origins.append(f"the output of layer '{names[module]}' is the first that is not finite")

    handles = [module.register_forward_hook(watch) for module in names]
    was_training = model.training
    try:
        with torch.no_grad():
            model.eval()  # a diagnosis must not move the statistics
            model.forward_raw(**inputs)  # type: ignore[operator]  # every model has it
    finally:
        model.train(was_training)
        for handle in handles:
            handle.remove()
    return origins[0] if origins else None


def _finite(value: object) -> bool:
    return not isinstance(value, Tensor) or not value.is_floating_point() or bool(torch.isfinite(value).all())
