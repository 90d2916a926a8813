"""What lies behind the digits: a seam for distractors and photographs, and the black of the reference set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Background(Protocol):
    """Makes the pictures that digits are pasted on; a function of (seed, scene index) alone, like all of a scene."""

    def __call__(self, seed: int, indices: Tensor, size: int, device: torch.device) -> Tensor:
        """Pictures (B, 3, size, size) uint8 for the scenes ``indices`` (B,); the caller may write into them."""
        ...


@dataclass(frozen=True)
class Black:
    """MREF: nothing but the digits."""

    def __call__(self, seed: int, indices: Tensor, size: int, device: torch.device) -> Tensor:
        """Zeros."""
        return torch.zeros(len(indices), 3, size, size, dtype=torch.uint8, device=device)
