"""Which device to compute on: ``auto``, or a name that torch knows and this machine has."""

from __future__ import annotations

import ctypes
from threading import Thread
from typing import TYPE_CHECKING

from saccade.errors import ConfigError

if TYPE_CHECKING:
    import torch


def pick_device(name: str | torch.device = "auto") -> torch.device:
    """The device called ``name``; ``auto`` is the first CUDA device, or else the CPU."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        device = torch.device(name)
        here = {"cpu": True, "cuda": (device.index or 0) < count, "mps": torch.backends.mps.is_available()}
        if here.get(device.type, False):
            return device
    except RuntimeError:  # torch knows no such name
        pass
    raise ConfigError(
        f"device '{name}' is not here ({count} CUDA devices found); choose auto, cpu, cuda, cuda:N or mps"
    )


def wake_cuda(name: str = "auto") -> Thread | None:
    """Make the context of the CUDA device ``name`` in the background, while the caller imports torch.

    The driver is called directly, which needs neither torch nor Python's lock. Torch then finds the context there.
    Nothing happens where there is no driver, or another kind of device is named.
    """
    kind, _, index = str(name).partition(":")
    if kind not in ("auto", "cuda") or not (index or "0").isdigit():
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    # Not a daemon: a process that ended in the middle of this could crash on its way out.
    thread = Thread(target=_make_context, args=(driver, int(index or 0)), name="saccade-cuda")
    thread.start()
    return thread


def _make_context(driver: ctypes.CDLL, index: int) -> None:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), index) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)  # the one that torch uses
