"""One optimisation step: micro-batches, backward, clipping, update; eagerly, or as one captured CUDA graph.

Both ways run the same `TrainStep._compute`. Nothing in it asks the device for a number, so on CUDA the host runs
ahead: scalars are summed on the device and read by `drain` every so often, and a non-finite gradient is remembered
there too. On the CPU, where reading is free, the gradient is checked before every update.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from saccade.engine.ema import WeightAverage
from saccade.engine.health import Fault, GradientWatch
from saccade.engine.protocol import Trainable
from saccade.engine.recipe import Phase
from saccade.engine.replicas import Learner
from saccade.errors import ConfigError, DataError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

CLIP_EPSILON = 1e-6  # as in torch.nn.utils.clip_grad_norm_
UNTAUGHT = "did not receive grad"  # what DistributedDataParallel says of the step before


class TrainStep:
    """Runs optimisation steps of one phase; ``loss`` is what the task built for it."""

    def __init__(
        self,
        task: Trainable,
        learner: Learner,
        phase: Phase,
        loss: object,
        parameters: dict[str, nn.Parameter],
        *,
        fabric: Fabric,
        module: Callable[..., dict[str, Tensor]],
        optimizer: torch.optim.Optimizer,
        ema: WeightAverage | None = None,
        first_step: int = 0,
    ) -> None:
        self.task, self.learner, self.parameters = task, learner, parameters
        self.phase, self.loss = phase, loss
        self.fabric, self.module, self.optimizer, self.ema = fabric, module, optimizer, ema
        self._options = task.forward_options(loss)
        self._sums: dict[str, Tensor] = {}
        self._count = 0
        self._watch = GradientWatch(fabric.device)
        self._watched: list[str] = []
        self._next = torch.tensor(first_step, device=fabric.device)  # number of the coming step, counted from 0
        self._check_each = fabric.device.type == "cpu"

    def __call__(self, batches: Sequence[object], lr: float) -> Fault | None:
        """Take one step on the micro-batches; on the CPU a fault is returned before anything is updated."""
        self._set_rate(lr)
        healthy = self._compute(batches)
        self._count += 1
        return None if healthy else self.fault()

    def arrange_buckets(self, batch: object) -> None:
        """Run a forward and a backward pass that changes nothing.

        After the first backward pass of a phase, DDP arranges gradients anew in the buckets that it sums over
        processes. With more than two processes the order of a sum depends on that arrangement, and so do its last bits.
        A run that goes on in the middle of a phase needs the arrangement of a run that was not interrupted.
        """
        before = [buffer.clone() for buffer in self.learner.buffers()]
        values = self.learner.losses(self.task, self._forward(batch), batch, self.loss)
        self.fabric.backward(values["loss"].sum())
        self.optimizer.zero_grad(set_to_none=True)
        for buffer, kept in zip(self.learner.buffers(), before):
            buffer.copy_(kept)  # statistics of normalisations

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
        return self._watch.fault(self._watched)

    def _set_rate(self, lr: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr

    def _compute(self, batches: Sequence[object]) -> bool:
        """The step itself; False when the update was withheld because the gradient is not finite."""
        self.optimizer.zero_grad(set_to_none=True)
        for number, batch in enumerate(batches):
            with self._syncs(is_last=number == len(batches) - 1):
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
            self._watch.observe(norms, self._next)
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

    def _forward(self, batch: object) -> dict[str, Tensor]:
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

    def _syncs(self, *, is_last: bool) -> AbstractContextManager[object]:
        """Between processes gradients are averaged once, in the backward pass of the last micro-batch."""
        if is_last or self.fabric.world_size == 1:
            return nullcontext()
        return self.fabric.no_backward_sync(self.module)  # type: ignore[arg-type]  # Fabric made the module


def _at_most(limit: float, norms: Tensor) -> Tensor:
    """The factors that bring gradients of these norms down to ``limit``; 1 where they are below it."""
    return (limit / (norms + CLIP_EPSILON)).clamp(max=1.0)


class GraphedStep(TrainStep):
    """The same step, captured once as a CUDA graph and replayed: one launch instead of hundreds.

    The first steps run eagerly on a side stream, as capturing asks for; they are ordinary training steps.
    """

    WARMUP = 3

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._static: list[Any] = []
        self._warm = 0

    def __call__(self, batches: Sequence[object], lr: float) -> Fault | None:
        """Take one step; faults are reported by `fault`, not here."""
        self._set_rate(lr)
        if self._graph is None and self._warm < self.WARMUP:
            self._warm_up(batches)
        else:
            if self._graph is None:
                self._capture(batches)
            for static, batch in zip(self._static, batches, strict=True):
                copy_tensors(static, batch)
            self._graph.replay()  # type: ignore[union-attr]  # it is captured by now
        self._count += 1
        return None

    def _warm_up(self, batches: Sequence[object]) -> None:
        # torch has no types here
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(current)
        with torch.cuda.stream(side):
            self._compute(batches)
        current.wait_stream(side)
        self._warm += 1

    def _capture(self, batches: Sequence[object]) -> None:
        self._static = [clone_tensors(batch) for batch in batches]
        self.optimizer.zero_grad(set_to_none=True)  # gradients must come from the graph's own memory
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            # Another thread may be making the next scenes on a stream of its own; only this one must keep still.
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._compute(self._static)
        except RuntimeError as error:
            raise ConfigError(
                f"graph: true, but this step cannot be captured ({str(error).splitlines()[0]}); set graph: false"
            ) from error
        self._graph = graph


def clone_tensors(batch: object) -> Any:
    """A copy of a batch with tensors of its own; other leaves are shared."""
    if isinstance(batch, Tensor):
        return batch.clone()
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        fields = [field.name for field in dataclasses.fields(batch) if field.init]
        return dataclasses.replace(batch, **{name: clone_tensors(getattr(batch, name)) for name in fields})
    if isinstance(batch, dict):
        return {key: clone_tensors(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(clone_tensors, batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(clone_tensors, batch))
    return batch


def copy_tensors(target: Any, source: Any) -> None:
    """Copy every tensor of ``source`` into its place in ``target``; what a captured step cannot take is a DataError."""
    for old, new in itertools.zip_longest(_leaves(target), _leaves(source)):
        both = isinstance(old, Tensor) and isinstance(new, Tensor)
        if both and (old.shape, old.dtype) == (new.shape, new.dtype):
            old.copy_(new, non_blocking=True)
        elif both or old != new:
            was, now = ((tuple(each.shape), each.dtype) if isinstance(each, Tensor) else each for each in (old, new))
            told = f"one had {was!r} when captured, now {now!r}"
            raise DataError(f"graph: true needs batches of one shape: {told}; set graph: false")


def _leaves(batch: Any) -> Iterator[Any]:
    """Tensors and plain values of a batch, in order; names of a dict count as values."""
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        batch = [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    elif isinstance(batch, dict):
        batch = [each for pair in batch.items() for each in pair]
    if isinstance(batch, (list, tuple)):
        for each in batch:
            yield from _leaves(each)
    else:
        yield batch
