"""Which device to compute on: ``auto``, or a name that torch knows and this machine has."""

from __future__ import annotations

import torch

from saccade.errors import ConfigError


def pick_device(name: str | torch.device = "auto") -> torch.device:
    """The device called ``name``; ``auto`` is the first CUDA device, or else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"no device '{name}'; choose auto, cpu, cuda, cuda:N or mps") from error
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise ConfigError(f"device '{name}' is not here ({count} CUDA devices found); choose auto or cpu")
    elif device.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError(f"device '{name}' is not here; choose auto or cpu")
    elif device.type not in ("cpu", "mps"):
        raise ConfigError(f"saccade does not compute on '{name}'; choose auto, cpu, cuda, cuda:N or mps")
    return device
