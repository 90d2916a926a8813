"""What a run computes on: one device, or several by Lightning Fabric, and what the first process does for all.

Fabric is imported only for several devices or a strategy (the extra ``distributed``). `SingleDevice` has the part of
its interface that one process uses, with the same numbers as Fabric's ``SingleDeviceStrategy`` with ``32-true`` and
``bf16-mixed``.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from saccade.engine.checkpoint import RngState
from saccade.engine.journal import Reason
from saccade.engine.recipe import Precision, Recipe
from saccade.errors import ConfigError, MissingExtraError, SaccadeError, TrainingStopped
from saccade.models.folder import pick_device

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")
AGREE_EVERY = 16  # steps between two looks at each other's requests to stop
REASONS: tuple[Reason | None, ...] = (None, "time", "signal")


def pick_hardware(recipe: Recipe, device: str, devices: int, nodes: int, strategy: str) -> Fabric:
    """Fabric for the asked devices, or its stand-in for a single one; a ConfigError in plain words."""
    kind, _, index = device.partition(":")
    chosen = pick_device("mps" if kind == "auto" and torch.backends.mps.is_available() else device)
    if recipe.replicas > 1 and devices * nodes > 1:
        raise ConfigError("replicas > 1 train on one device; use `devices=1`, or replicas: 1")
    if "TORCHELASTIC_RUN_ID" in os.environ:
        started, here = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
        if (devices, nodes) != (here, started // here):
            raise ConfigError(
                f"torchrun started {started} processes, {here} here; use `devices={here}` and `nodes={started // here}`"
            )
    precision: Any = recipe.precision
    if precision == "auto":
        precision = "bf16-mixed" if chosen.type == "cuda" else "32-true"
    if devices == nodes == 1 and strategy == "auto":
        one = torch.device(chosen.type, chosen.index or 0) if chosen.type == "cuda" else chosen
        return cast("Fabric", SingleDevice(one, precision))
    try:
        from lightning_fabric import Fabric
    except ModuleNotFoundError as error:
        raise MissingExtraError("training on several devices, or by a strategy,", "distributed") from error
    which: Any = [int(index)] if index else devices
    try:
        return Fabric(accelerator=kind, devices=which, num_nodes=nodes, strategy=strategy, precision=precision)
    except (ValueError, RuntimeError, TypeError) as error:
        raise ConfigError(f"`device={device}`, `devices={devices}`, `strategy={strategy}`: {error}") from error


class SingleDevice:
    """The part of Fabric's interface that a run in one process uses; ``precision`` is no ``auto`` any more."""

    world_size = 1
    global_rank = 0
    is_global_zero = True

    def __init__(self, device: torch.device, precision: Precision) -> None:
        self.device, self.precision = device, precision
        self._loading: Thread | None = None
        if device.type == "cuda":
            torch.cuda.set_device(device)
            self._loading = Thread(target=_load_libraries, args=(device,), name="saccade-cuda-libraries")
            self._loading.start()

    def launch(self, work: Callable[[SingleDevice], T]) -> T:
        """Run ``work`` here and now."""
        return work(self)

    def setup(
        self, module: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[Callable[..., dict[str, Tensor]], torch.optim.Optimizer]:
        """``module`` with the casts of the precision, and ``optimizer`` as it is."""
        if self._loading is not None:  # nothing else may use the device while a step is captured
            self._loading.join()
        return module if self.precision == "32-true" else _in_bfloat16(module, self.device.type), optimizer

    def backward(self, loss: Tensor) -> None:
        """Backpropagate ``loss``."""
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types here


def _load_libraries(device: torch.device) -> None:
    """Let torch load cuDNN and cuBLAS, which takes a second or more, while the data is read."""
    try:
        with torch.no_grad(), torch.cuda.device(device):
            picture = torch.zeros(2, 8, 16, 16, device=device)
            torch.nn.functional.conv2d(picture, torch.zeros(8, 8, 3, 3, device=device))
            torch.cuda.current_blas_handle()  # type: ignore[no-untyped-call]  # torch has no types here
            torch.cuda.current_stream(device).synchronize()
    except RuntimeError:  # the first step will say what is wrong
        return


def _in_bfloat16(module: nn.Module, device: str) -> Callable[..., Any]:
    """``module``, computing in bfloat16 where torch's autocast says so; its outputs are float32."""

    def cast_to(dtype: torch.dtype, tree: object) -> Any:
        def cast(leaf: object) -> object:
            return leaf.to(dtype) if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf

        return tree_map(cast, tree)

    def forward(**inputs: object) -> Any:
        with torch.autocast(device, dtype=torch.bfloat16):
            outputs = module(**cast_to(torch.bfloat16, inputs))
        return cast_to(torch.get_default_dtype(), outputs)

    return forward


def on_rank_zero(fabric: Fabric, work: Callable[[], T]) -> T:
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
    """Turn the error of a connection whose other end is gone into a line that says what to do."""
    try:
        yield
    except RuntimeError as error:
        message = str(error).lower()
        is_of_torch = isinstance(error, (torch.distributed.DistBackendError, torch.distributed.DistNetworkError))
        is_gloo = "connection closed by peer" in message or "connection reset" in message or "timed out" in message
        if fabric.world_size == 1 or not (is_of_torch or is_gloo):
            raise
        raise TrainingStopped(
            f"another process of this run has ended, so rank {fabric.global_rank} ends too; see its error, then "
            "continue from the last checkpoint with `resume=True`"
        ) from error


def gather_rng(fabric: Fabric, state: RngState) -> list[RngState]:
    """The random states of all ranks, in order."""
    if fabric.world_size == 1:
        return [state]
    states: list[RngState | None] = [None] * fabric.world_size
    torch.distributed.all_gather_object(states, state)
    return [rank_state for rank_state in states if rank_state is not None]


def agree(fabric: Fabric, reason: Reason | None, step: int, *, is_last: bool) -> Reason | None:
    """Why all ranks stop after ``step``, if one has a reason; several ask every so many steps."""
    if fabric.world_size == 1:
        return reason
    if not is_last and step % AGREE_EVERY:
        return None
    code = torch.tensor(REASONS.index(reason), device=fabric.device)
    return REASONS[int(fabric.all_reduce(code, reduce_op="max"))]  # type: ignore[arg-type]  # Fabric takes the name too


def shutdown(fabric: Fabric) -> None:
    """End the process group in step; a rank that leaves first can take the others down while they tidy up.

    What wraps the model must be gone before: it can hold the last reference to a gloo group.
    """
    if fabric.world_size > 1:
        gc.collect()
        fabric.barrier()
        torch.distributed.destroy_process_group()
