"""Training pictures varied on the device: crop, mirror, brightness, by one resampling of the whole batch.

A batch is varied by a function of one seed, so a resumed run sees the same pictures. Hue and saturation are left alone:
colours are what many questions are about. What a crop cuts away may be the thing asked for; keep ``area`` near 1 where
it is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.hashing import hash_u32
from saccade.errors import ConfigError
from saccade.geometry import crop_frame, sample

_AREA, _ASPECT, _X, _Y, _MIRROR, _LIGHT = range(6)


@dataclass(frozen=True)
class Augmentation:
    """How much training pictures are varied."""

    area: tuple[float, float] = (0.6, 1.0)
    """Share of the picture that a crop keeps, from … to."""
    aspect: float = 4 / 3
    """A crop is stretched by at most this, either way."""
    mirror: bool = True
    """Turn left and right round in half of them; not where a query says left or right, nor for letters."""
    brightness: float = 0.0
    """Pixels are multiplied by 1 ± this at most."""

    def __post_init__(self) -> None:
        low, high = self.area
        if not 0 < low <= high <= 1:
            raise ConfigError(f"area: shares between 0 and 1, the smaller first, found {low} and {high}")
        if self.aspect < 1:
            raise ConfigError(f"aspect: must be at least 1, found {self.aspect}")
        if not 0 <= self.brightness < 1:
            raise ConfigError(f"brightness: must lie in 0 .. 1, found {self.brightness}")


def augment(images: Tensor, how: Augmentation, seed: int) -> tuple[Tensor, Tensor]:
    """Vary ``images`` (B,3,H,W) in 0..1, each in its own way, by a function of ``seed`` and its place in the batch.

    Returns:
        The varied images (B,3,H,W), and the frames (B,2,3) that lead from their pixels to those of ``images``.
    """
    height, width = images.shape[-2:]
    draws = torch.arange(6, device=images.device)
    rows = torch.arange(len(images), device=images.device)
    share = hash_u32(seed, rows[:, None], draws).double() / 2**32  # (B,6) in [0,1)
    area = how.area[0] + (how.area[1] - how.area[0]) * share[:, _AREA]  # (B,)
    stretch = torch.exp((2 * share[:, _ASPECT] - 1) * math.log(how.aspect) / 2)  # (B,) √ of width over height
    cut_width = (area.sqrt() * stretch).clamp(max=1) * width
    cut_height = (area.sqrt() / stretch).clamp(max=1) * height
    left, top = share[:, _X] * (width - cut_width), share[:, _Y] * (height - cut_height)
    right, bottom = left + cut_width, top + cut_height
    mirrored = (share[:, _MIRROR] < 0.5) & how.mirror
    start, end = torch.where(mirrored, right, left), torch.where(mirrored, left, right)
    frames = crop_frame(torch.stack([start, top, end, bottom], dim=-1), (height, width))  # (B,2,3)
    varied = sample(images, frames, (height, width))
    if how.brightness:
        light = 1 + how.brightness * (2 * share[:, _LIGHT] - 1)  # (B,)
        varied = (varied * light.to(varied.dtype)[:, None, None, None]).clamp(0, 1)
    return varied, frames
