"""The five colours of the attribute task, in the order that their labels have."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

COLOURS = ("green", "yellow", "white", "red", "blue")

# From the authors' released generator; they kept the names in an unordered set, so the label order is ours.
_RGB = {
    "green": (16, 166, 81),
    "yellow": (255, 241, 78),
    "white": (224, 224, 224),
    "red": (146, 16, 16),
    "blue": (16, 98, 192),
}


def rgb(colours: Tensor, noise: Tensor) -> Tensor:
    """Colours (…) and their noise (…), one number on all three channels, as (…, 3) int64 in 0..255."""
    return (_table(colours.device)[colours] + noise[..., None]).clamp_(0, 255)


@lru_cache
def _table(device: torch.device) -> Tensor:
    """(5, 3): copied to a device once, as every copy makes the host wait."""
    return torch.tensor([_RGB[name] for name in COLOURS], device=device)
