"""The same step, captured once as a CUDA graph and replayed: one launch instead of hundreds."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from saccade.engine.step import Fault, TrainStep
from saccade.errors import ConfigError, DataError


class GraphedStep(TrainStep):
    """A step that is captured once and replayed; every batch must have the shapes of the first.

    The first steps run eagerly on a side stream, as capturing asks for; they are ordinary training steps.
    """

    WARMUP = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._static: list[Any] = []
        self._warm = 0

    def __call__(self, batches: Sequence[Any], lr: float) -> Fault | None:
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

    def _warm_up(self, batches: Sequence[Any]) -> None:
        # torch has no types here
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(current)
        with torch.cuda.stream(side):
            self._compute(batches)
        current.wait_stream(side)
        self._warm += 1

    def _capture(self, batches: Sequence[Any]) -> None:
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


def clone_tensors(batch: Any) -> Any:
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
    """Copy every tensor of ``source`` into its place in ``target``, or raise a DataError."""
    for old, new in itertools.zip_longest(_leaves(target), _leaves(source)):
        both = isinstance(old, Tensor) and isinstance(new, Tensor)
        if both and (old.shape, old.dtype) == (new.shape, new.dtype):
            old.copy_(new, non_blocking=True)
        elif both or old != new:
            was, now = ((tuple(leaf.shape), leaf.dtype) if isinstance(leaf, Tensor) else leaf for leaf in (old, new))
            difference = f"one had {was!r} when captured, now {now!r}"
            raise DataError(f"graph: true needs batches of one shape: {difference}; set graph: false")


def _leaves(batch: Any) -> Iterator[Any]:
    """Tensors and plain values of a batch, in order; names of a dict count as values."""
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        batch = [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    elif isinstance(batch, dict):
        batch = [part for pair in batch.items() for part in pair]
    if isinstance(batch, (list, tuple)):
        for part in batch:
            yield from _leaves(part)
    else:
        yield batch
