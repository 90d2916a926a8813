"""Augments training pictures on the device: crop, rotation, mirroring and light, by one resampling of the batch.

The augmentation of a batch is a function of one seed, so a resumed run sees the same pictures. Colours change only with
``tint`` or ``invert``: many questions are about them. A crop may cut away the thing asked for; keep ``area`` near 1
where it is small.

``erase`` is that of Zhong et al., "Random Erasing Data Augmentation", 2017 (arXiv:1708.04896), with the mean colour of
the picture in place of random pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.config import Portion, Share, Within
from saccade.data.scenes.hashing import hash_u32
from saccade.errors import ConfigError
from saccade.geometry import Size, compose, crop_frame, sample, tilt_frame

_AREA, _ASPECT, _X, _Y, _MIRROR, _LIGHT, _CONTRAST = range(7)
_TINT = slice(7, 10)  # a draw for each channel
_TURN, _SLANT, _INVERT, _BLUR = range(10, 14)
_ERASE, _HOLE_AREA, _HOLE_ASPECT, _HOLE_X, _HOLE_Y = range(14, 19)
_DRAWS = 19  # a new option takes the next numbers: those before it keep their draws

# What is erased is at most this much wider than high, in shares of the picture's sides, or higher than wide; so it is a
# third of a picture at most.
HOLE_ASPECT = 3.0
# Largest area of a crop, in pictures: stretched by up to 2, no side shrinks by more than 2 and no pixel is skipped.
MAX_AREA = 2.0


@dataclass(frozen=True)
class Augmentation:
    """How much training pictures are varied."""

    area: tuple[float, float] = (0.6, 1.0)
    """Area of a crop in pictures, from … to. Where this reaches above 1, a crop may be wider or higher than the
    picture: it then goes across the whole of it, things become smaller, and the border of the picture goes on."""
    aspect: Annotated[float, Within(1)] = 4 / 3
    """A crop is stretched by at most this, either way."""
    mirror: bool = True
    """Turn left and right round in half of them; not where a query says left or right, nor for letters."""
    turn: Annotated[float, Within(0, 180)] = 0.0
    """Pictures are turned about their centre by ± this many degrees at most."""
    slant: Share = 0.0
    """Rows of pixels are shifted by ± this at most for each row from the centre: 0.2 leans a letter by 11 degrees."""
    blur: Share = 0.0
    """Share of the pictures that are blurred, at most as if shrunk to half and enlarged again."""
    erase: Share = 0.0
    """Share of the pictures in which a rectangle is painted over with their mean colour."""
    erase_area: tuple[float, float] = (0.02, 0.1)
    """Area of that rectangle in pictures, from … to; what is asked for may lie under it."""
    invert: Share = 0.0
    """Share of the pictures whose light and dark are exchanged; not where a question is about colours."""
    brightness: Portion = 0.0
    """Pixels are multiplied by 1 ± this at most."""
    contrast: Portion = 0.0
    """Distances of pixels from their picture's mean are multiplied by 1 ± this at most."""
    tint: Portion = 0.0
    """Each channel is multiplied by its own 1 ± this at most; not where a question is about colours."""

    def __post_init__(self) -> None:
        for name, most in (("area", MAX_AREA), ("erase_area", 1 / HOLE_ASPECT)):
            low, high = getattr(self, name)
            if not 0 < low <= high <= most:
                limits = f"two numbers above 0 and at most {most:.2g}, the smaller first"
                raise ConfigError(f"{name}: {limits}, found {low} and {high}")


def augment(images: Tensor, how: Augmentation, seed: int) -> tuple[Tensor, Tensor]:
    """Vary ``images`` (B,3,H,W) in 0..1, each in its own way, by a function of ``seed`` and its place in the batch.

    Returns:
        The varied images (B,3,H,W), and the frames (B,2,3) that lead from their pixels to those of ``images``.
    """
    height, width = images.shape[-2:]
    draws = torch.arange(_DRAWS, device=images.device)
    rows = torch.arange(len(images), device=images.device)
    share = hash_u32(seed, rows[:, None], draws).double() / 2**32  # (B,19) in [0,1)
    frames = _cut(how, share, (height, width))  # (B,2,3)
    swing = 2 * share - 1  # (B,19) in [-1,1)
    if how.turn or how.slant:
        turn, slant = math.radians(how.turn) * swing[:, _TURN], how.slant * swing[:, _SLANT]  # (B,) each
        frames = compose(tilt_frame(turn, slant, (height, width)), frames)  # (B,2,3)
    varied = sample(images, frames, (height, width))
    if how.blur:
        varied = _blurred(varied, (1 - share[:, _BLUR] / how.blur).clamp(min=0))
    if how.erase:
        varied = _erased(varied, how, share)
    if how.invert:
        varied = torch.where((share[:, _INVERT] < how.invert)[:, None, None, None], 1 - varied, varied)
    if how.brightness or how.contrast or how.tint:
        varied = _coloured(varied, how, swing)
    return varied, frames


def _cut(how: Augmentation, share: Tensor, size: Size) -> Tensor:
    """Frames (B,2,3) of crops of pictures of ``size``, upright, some mirrored, by shares (B,19) between 0 and 1."""
    height, width = size
    area = how.area[0] + (how.area[1] - how.area[0]) * share[:, _AREA]  # (B,)
    stretch = torch.exp((2 * share[:, _ASPECT] - 1) * math.log(how.aspect) / 2)  # (B,) √ of width over height
    most = 1 if how.area[1] <= 1 else math.inf  # sides of the picture
    cut_width = (area.sqrt() * stretch).clamp(max=most) * width
    cut_height = (area.sqrt() / stretch).clamp(max=most) * height
    # A crop smaller than the picture lies inside it; for a larger one the difference is negative: it lies round it.
    left, top = share[:, _X] * (width - cut_width), share[:, _Y] * (height - cut_height)
    right, bottom = left + cut_width, top + cut_height
    mirrored = (share[:, _MIRROR] < 0.5) & how.mirror
    start, end = torch.where(mirrored, right, left), torch.where(mirrored, left, right)
    return crop_frame(torch.stack([start, top, end, bottom], dim=-1), size)  # (B,2,3)


def _blurred(images: Tensor, amount: Tensor) -> Tensor:
    """The images (B,3,H,W) mixed with what shrinking to half leaves of them, by an ``amount`` (B,) between 0 and 1."""
    height, width = images.shape[-2:]
    halved = F.avg_pool2d(images, 2, ceil_mode=True)  # (B,3,⌈H/2⌉,⌈W/2⌉); of an odd side the last pixel stands alone
    doubled = F.interpolate(halved, scale_factor=2.0, mode="bilinear", align_corners=False)  # so that pixels stay put
    soft = doubled[..., :height, :width]  # (B,3,H,W)
    return torch.lerp(images, soft, amount[:, None, None, None].to(images.dtype))


def _erased(images: Tensor, how: Augmentation, share: Tensor) -> Tensor:
    """The images (B,3,H,W), some with a rectangle in their mean colour, by shares (B,19) between 0 and 1."""
    height, width = images.shape[-2:]
    area = how.erase_area[0] + (how.erase_area[1] - how.erase_area[0]) * share[:, _HOLE_AREA]  # (B,)
    stretch = torch.exp((2 * share[:, _HOLE_ASPECT] - 1) * math.log(HOLE_ASPECT) / 2)  # (B,) √ of width over height
    across = _between(share[:, _HOLE_X], area.sqrt() * stretch, width)  # (B,W)
    down = _between(share[:, _HOLE_Y], area.sqrt() / stretch, height)  # (B,H)
    chosen = share[:, _ERASE] < how.erase  # (B,)
    hole = chosen[:, None, None, None] & down[:, None, :, None] & across[:, None, None, :]  # (B,1,H,W)
    return torch.where(hole, images.mean((2, 3), keepdim=True), images)


def _between(place: Tensor, length: Tensor, pixels: int) -> Tensor:
    """Which ``pixels`` of a side lie in a part of that ``length`` (B,) ≤ 1, at a ``place`` (B,) from first to last."""
    start = (place * (1 - length))[:, None]  # (B,1)
    middles = (torch.arange(pixels, device=place.device) + 0.5) / pixels  # (N,)
    return (middles >= start) & (middles < start + length[:, None])  # (B,N)


def _coloured(images: Tensor, how: Augmentation, swing: Tensor) -> Tensor:
    """The images (B,3,H,W) in other light, by shares (B,19) between -1 and 1 of what ``how`` allows."""
    swing = swing.to(images.dtype)
    light = (1 + how.brightness * swing[:, _LIGHT, None]) * (1 + how.tint * swing[:, _TINT])  # (B,3)
    contrast = 1 + how.contrast * swing[:, _CONTRAST]  # (B,)
    mean = images.mean((1, 2, 3), keepdim=True)  # (B,1,1,1)
    spread = (images - mean) * contrast[:, None, None, None] + mean  # (B,3,H,W)
    return (spread * light[:, :, None, None]).clamp(0, 1)


MEAN_COLOUR = (124, 116, 104)  # (0.485, 0.456, 0.406) as bytes: what the networks of this package subtract
_SHIFT_X, _SHIFT_Y, _SHIFT_MIRROR = range(3)


@dataclass(frozen=True)
class Shift:
    """How far training pictures are moved, and whether they are mirrored."""

    pixels: Annotated[int, Within(0, 1024)] = 4
    """At most so many, each way."""
    mirror: bool = True
    """Turn left and right round in half of them; not for letters."""


def shifted(images: Tensor, how: Shift, seed: int) -> Tensor:
    """Move and mirror ``images`` (B,3,H,W) uint8, each in its own way, by a function of ``seed`` and its place."""
    (count, _, height, width), device = images.shape, images.device
    rows, draws = torch.arange(count, device=device), torch.arange(3, device=device)
    drawn = hash_u32(seed, rows[:, None], draws)  # (B,3) in 0 .. 2^32 - 1
    moves = drawn[:, :_SHIFT_MIRROR] % (2 * how.pixels + 1) - how.pixels  # (B,2) as (x, y)
    x = torch.arange(width, device=device)  # (W,)
    if how.mirror:
        x = torch.where(drawn[:, _SHIFT_MIRROR, None] >= 1 << 31, width - 1 - x, x)  # (B,W)
    x = x + moves[:, _SHIFT_X, None]  # (B,W): the column that each pixel comes from
    y = torch.arange(height, device=device) + moves[:, _SHIFT_Y, None]  # (B,H)
    outside = ((x < 0) | (x >= width))[:, None, None, :] | ((y < 0) | (y >= height))[:, None, :, None]  # (B,1,H,W)
    column = x.clamp(0, width - 1)[:, None, :]  # (B,1,W)
    place = (y.clamp(0, height - 1)[:, :, None] * width + column).flatten(1)  # (B,H·W)
    moved = images.flatten(2).gather(2, place[:, None].expand(-1, images.shape[1], -1)).view_as(images)  # (B,3,H,W)
    return torch.where(outside, _colour(device), moved)


@lru_cache(maxsize=8)
def _colour(device: torch.device) -> Tensor:
    """The mean colour (3,1,1) on a device; sent there once, as a GPU that is sent something is waited for."""
    return torch.tensor(MEAN_COLOUR, dtype=torch.uint8, device=device)[:, None, None]
