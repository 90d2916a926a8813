"""Training in one process on one device: what the engine asks of Lightning Fabric, without importing it.

Importing Fabric takes twice as long as importing torch, because it imports torchmetrics and matplotlib. One process
needs nothing of it but the cast to bfloat16. `SingleDevice` has the same interface and computes the same numbers as
Fabric's ``SingleDeviceStrategy`` with the precisions ``32-true`` and ``bf16-mixed``.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from saccade.engine.recipe import Precision

T = TypeVar("T")


class SingleDevice:
    """The part of Fabric's interface that a run in one process uses.

    Args:
        device: where everything is computed.
        precision: ``32-true`` or ``bf16-mixed``; ``auto`` is resolved by the caller.
    """

    world_size = 1
    global_rank = 0
    is_global_zero = True
    loggers: tuple[Any, ...] = ()

    def __init__(self, device: torch.device, precision: Precision) -> None:
        self.device, self.precision = device, precision
        self._loading: Thread | None = None
        if device.type == "cuda":
            torch.cuda.set_device(device)
            self._loading = Thread(target=_load_libraries, args=(device,), name="saccade-cuda-libraries")
            self._loading.start()

    @property
    def is_full_precision(self) -> bool:
        """Whether the model computes in plain single precision."""
        return self.precision == "32-true"

    def launch(self, work: Callable[[SingleDevice], T]) -> T:
        """Run ``work`` here and now."""
        return work(self)

    def setup(
        self, module: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[Callable[..., dict[str, Tensor]], torch.optim.Optimizer]:
        """``module`` with the casts of the precision, and ``optimizer`` as it is."""
        if self._loading is not None:  # nothing else may use the device while a step is captured
            self._loading.join()
        return module if self.is_full_precision else _Cast(module, self.device.type), optimizer

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


class _Cast:
    """A module that computes in bfloat16 where torch's autocast says so; its outputs are float32."""

    def __init__(self, module: nn.Module, device: str) -> None:
        self._module, self._device = module, device

    def __call__(self, **inputs: object) -> dict[str, Tensor]:
        narrow = tree_map(lambda leaf: _cast(leaf, torch.bfloat16), inputs)
        with torch.autocast(self._device, dtype=torch.bfloat16):
            outputs = self._module(**narrow)
        # torch has no types here
        return tree_map(lambda leaf: _cast(leaf, torch.get_default_dtype()), outputs)  # type: ignore[no-any-return]


def _cast(leaf: object, dtype: torch.dtype) -> object:
    """A tensor of floats as ``dtype``; anything else as it is."""
    return leaf.to(dtype) if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf
