"""A coloured patch in the corner of the picture, behind the digits: a planted cause that no question names.

Its colour is drawn from the number of the scene, so it stays when digits are changed; ``step`` changes the patch alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.scenes.backgrounds import BACKGROUND_DRAWS, Background
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.palette import COLOURS, rgb

SIDE = 12
"""Side of the patch, in pixels."""
_COLOUR = BACKGROUND_DRAWS + 40  # after the draws of every background that may lie behind it


@dataclass(frozen=True)
class Cornered:
    """A background with the patch in its upper left corner."""

    behind: Background
    """What lies behind the patch."""
    step: int = 0
    """How many colours further than the scene's own."""

    @property
    def name(self) -> str:
        """What lies behind it, and the patch."""
        return f"{self.behind.name}, patch in the corner"

    def colours(self, seed: int, indices: Tensor) -> Tensor:
        """(B,) id in ``COLOURS`` of the patch of each scene."""
        return (uniform_below(hash_u32(seed, indices, _COLOUR), len(COLOURS)) + self.step) % len(COLOURS)

    def mask(self, size: int, device: torch.device) -> Tensor:
        """(size, size) bool: its pixels, where no digit lies over them."""
        mask = torch.zeros(size, size, dtype=torch.bool, device=device)
        mask[:SIDE, :SIDE] = True
        return mask

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """What lies behind, with the patch."""
        images = self.behind(glyphs, seed, indices, size)
        colour = self.colours(seed, indices)  # (B,)
        images[:, :, :SIDE, :SIDE] = rgb(colour, torch.zeros_like(colour)).to(torch.uint8)[:, :, None, None]
        return images
