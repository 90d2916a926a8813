"""What lies behind the digits: the seam for distractors and photographs, and the black of the reference set.

A background sees the glyphs of the split, the seed and the number of the scene, and never the digits of the scene. So
the three sets hold the same digits at the same places, and a scene rendered again with one object changed keeps its
background to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from saccade.data.scenes.glyphs import GlyphSet

BACKGROUND_DRAWS = 50
"""First stream of draws within a scene that belongs to its background; those below make the digits."""


class Background(Protocol):
    """Makes the pictures that digits are pasted on."""

    @property
    def name(self) -> str:
        """Says what it is, of which material and how much of it; goes into results."""
        ...

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Pictures (B, 3, size, size) uint8 for the scenes ``indices`` (B,); the caller may write into them.

        Args:
            glyphs: those that the digits come from, on the device of ``indices``; a background made of glyphs takes
                them from here, so that it keeps to the split.
            seed: which stream of scenes.
            indices: numbers of the scenes in it.
            size: side of the pictures.
        """
        ...


@dataclass(frozen=True)
class Black:
    """MREF: nothing but the digits."""

    name: str = "black"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Zeros."""
        return torch.zeros(len(indices), 3, size, size, dtype=torch.uint8, device=indices.device)
