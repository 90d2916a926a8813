"""Training pictures varied on the device: crop, mirror, light, contrast, colour, by one resampling of the whole batch.

A batch is varied by a function of one seed, so a resumed run sees the same pictures. Colours are left alone unless
``tint`` says otherwise: they are what many questions are about. What a crop cuts away may be the thing asked for; keep
``area`` near 1 where it is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.hashing import hash_u32
from saccade.errors import ConfigError
from saccade.geometry import crop_frame, sample

_AREA, _ASPECT, _X, _Y, _MIRROR, _LIGHT, _CONTRAST, _TINT = range(8)
_DRAWS = _TINT + 3  # a tint for each channel


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
    contrast: float = 0.0
    """Distances of pixels from their picture's mean are multiplied by 1 ± this at most."""
    tint: float = 0.0
    """Each channel is multiplied by its own 1 ± this at most; not where a question is about colours."""

    def __post_init__(self) -> None:
        low, high = self.area
        if not 0 < low <= high <= 1:
            raise ConfigError(f"area: shares between 0 and 1, the smaller first, found {low} and {high}")
        if self.aspect < 1:
            raise ConfigError(f"aspect: must be at least 1, found {self.aspect}")
        for name in ("brightness", "contrast", "tint"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name}: must lie in 0 .. 1, found {getattr(self, name)}")


def augment(images: Tensor, how: Augmentation, seed: int) -> tuple[Tensor, Tensor]:
    """Vary ``images`` (B,3,H,W) in 0..1, each in its own way, by a function of ``seed`` and its place in the batch.

    Returns:
        The varied images (B,3,H,W), and the frames (B,2,3) that lead from their pixels to those of ``images``.
    """
    height, width = images.shape[-2:]
    draws = torch.arange(_DRAWS, device=images.device)
    rows = torch.arange(len(images), device=images.device)
    share = hash_u32(seed, rows[:, None], draws).double() / 2**32  # (B,10) in [0,1)
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
    return _coloured(varied, how, 2 * share - 1), frames


def _coloured(images: Tensor, how: Augmentation, share: Tensor) -> Tensor:
    """The images (B,3,H,W) in other light, by shares (B,10) between -1 and 1 of what ``how`` allows."""
    if not (how.brightness or how.contrast or how.tint):
        return images
    share = share.to(images.dtype)
    light = (1 + how.brightness * share[:, _LIGHT, None]) * (1 + how.tint * share[:, _TINT:])  # (B,3)
    contrast = 1 + how.contrast * share[:, _CONTRAST]  # (B,)
    mean = images.mean((1, 2, 3), keepdim=True)  # (B,1,1,1)
    spread = (images - mean) * contrast[:, None, None, None] + mean  # (B,3,H,W)
    return (spread * light[:, :, None, None]).clamp(0, 1)
