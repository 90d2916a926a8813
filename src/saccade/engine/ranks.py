"""Work that only the first process does, with the result shared with all processes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from saccade.engine.health import TrainingStopped
from saccade.engine.seeding import RngState
from saccade.engine.single_device import SingleDevice
from saccade.errors import SaccadeError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")


def is_full_precision(fabric: Fabric) -> bool:
    """Whether one process trains in plain single precision, so that a forward pass needs nothing from Fabric."""
    if isinstance(fabric, SingleDevice):
        return fabric.is_full_precision
    from lightning_fabric.plugins.precision import Precision

    return fabric.world_size == 1 and type(fabric.strategy.precision) is Precision


def run_on_rank_zero(fabric: Fabric, work: Callable[[], T]) -> T:
    """Run ``work`` on rank 0 alone; every rank gets its result, or its error."""
    if fabric.world_size == 1:
        return work()
    outcome: tuple[Any, SaccadeError | None] = (None, None)
    if fabric.is_global_zero:
        try:
            outcome = (work(), None)
        except SaccadeError as error:
            outcome = (None, error)
    result: T
    result, problem = fabric.broadcast(outcome, src=0)
    if problem is not None:
        raise problem
    return result


@contextmanager
def explain_lost_rank(fabric: Fabric) -> Iterator[None]:
    """Turn the error of a connection whose other end is gone into a line that says so, and what to do."""
    try:
        yield
    except RuntimeError as error:
        if fabric.world_size == 1 or not _is_lost(error):
            raise
        raise TrainingStopped(
            f"another process of this run has ended, so rank {fabric.global_rank} ends too; see its error, then "
            "continue from the last checkpoint with `resume=True`"
        ) from error


def _is_lost(error: RuntimeError) -> bool:
    if isinstance(error, (torch.distributed.DistBackendError, torch.distributed.DistNetworkError)):
        return True
    said = str(error).lower()
    return "connection closed by peer" in said or "connection reset" in said or ("gloo" in said and "timed out" in said)


def gather_rng(fabric: Fabric, state: RngState) -> list[RngState]:
    """The random states of all ranks, in order."""
    if fabric.world_size == 1:
        return [state]
    states: list[RngState | None] = [None] * fabric.world_size
    torch.distributed.all_gather_object(states, state)
    return [found for found in states if found is not None]


def max_over_ranks(fabric: Fabric, value: int) -> int:
    """The largest ``value`` of all ranks."""
    if fabric.world_size == 1:
        return value
    # Fabric takes the name too
    return int(fabric.all_reduce(torch.tensor(value, device=fabric.device), reduce_op="max"))  # type: ignore[arg-type]


def shutdown(fabric: Fabric) -> None:
    """End the process group in step; a rank that leaves first can take the others down while they tidy up.

    Call it when nothing wrapped for distributed training is in use any more: the wrappers must go before the group,
    because a wrapper that drops the last reference to a gloo group waits for threads that wait for the interpreter.
    """
    if fabric.world_size > 1:
        gc.collect()
        fabric.barrier()
        torch.distributed.destroy_process_group()
