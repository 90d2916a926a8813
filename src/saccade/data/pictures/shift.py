"""Training pictures moved by a few whole pixels and mirrored, as bytes and on the device: the augmentation of CIFAR.

He et al. 2016 (arXiv:1512.03385), Section 4.2, and Wang et al. 2017 (arXiv:1704.06904), Section 4.1: pad by 4 pixels
on each side, cut a picture of the old size at a random place, mirror half of them. The padding is the mean colour, so
that it is 0 for a network that subtracts this colour first. No pixel is resampled, so bytes stay bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from saccade.data.scenes.hashing import hash_u32
from saccade.errors import ConfigError

MEAN_COLOUR = (124, 116, 104)
"""(0.485, 0.456, 0.406) as bytes: what the networks of this package subtract."""
_X, _Y, _MIRROR = range(3)


@dataclass(frozen=True)
class Shift:
    """How far training pictures are moved, and whether they are mirrored."""

    pixels: int = 4
    """At most so many, each way."""
    mirror: bool = True
    """Turn left and right round in half of them; not for letters."""

    def __post_init__(self) -> None:
        if not 0 <= self.pixels <= 1024:
            raise ConfigError(f"pixels: must lie in 0 .. 1024, found {self.pixels}")


def shifted(images: Tensor, how: Shift, seed: int) -> Tensor:
    """Move and mirror ``images`` (B,3,H,W) uint8, each in its own way, by a function of ``seed`` and its place."""
    (count, _, height, width), device = images.shape, images.device
    rows, draws = torch.arange(count, device=device), torch.arange(3, device=device)
    drawn = hash_u32(seed, rows[:, None], draws)  # (B,3) in 0 .. 2^32 - 1
    moves = drawn[:, :_MIRROR] % (2 * how.pixels + 1) - how.pixels  # (B,2) as (x, y)
    x = torch.arange(width, device=device)  # (W,)
    if how.mirror:
        x = torch.where(drawn[:, _MIRROR, None] >= 1 << 31, width - 1 - x, x)  # (B,W)
    x = x + moves[:, _X, None]  # (B,W): the column that each pixel comes from
    y = torch.arange(height, device=device) + moves[:, _Y, None]  # (B,H)
    outside = ((x < 0) | (x >= width))[:, None, None, :] | ((y < 0) | (y >= height))[:, None, :, None]  # (B,1,H,W)
    column = x.clamp(0, width - 1)[:, None, :]  # (B,1,W)
    place = (y.clamp(0, height - 1)[:, :, None] * width + column).flatten(1)  # (B,H·W)
    moved = images.flatten(2).gather(2, place[:, None].expand(-1, images.shape[1], -1)).view_as(images)  # (B,3,H,W)
    return torch.where(outside, _colour(device), moved)


@lru_cache(maxsize=8)
def _colour(device: torch.device) -> Tensor:
    """The mean colour (3,1,1) on a device; sent there once, as a GPU that is sent something is waited for."""
    return torch.tensor(MEAN_COLOUR, dtype=torch.uint8, device=device)[:, None, None]
