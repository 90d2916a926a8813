"""Where an object of a scene can be moved to: a place at some distance where nothing lies.

Every shift of the object is tried at once: how many of its pixels would fall on the pixels of an object is a
correlation of two masks, and a product of their Fourier transforms gives it for all shifts. The free places of a scene
are numbered row by row, and its hash picks one of them.

Axes: B scenes, H and W pixels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.layout import GlyphLayout

_PLACE = 200  # the draw, on top of those that make a scene


class FreePlaces(NamedTuple):
    """A free place for one object of each scene."""

    x: Tensor
    """(B,) left edge of its box; where it lies now if there is no free place."""
    y: Tensor
    """(B,) top edge."""
    found: Tensor
    """(B,) bool."""


def free_places(layout: GlyphLayout, obj: Tensor, least: int) -> FreePlaces:
    """A place for object ``obj`` (B,) of each scene where it covers no pixel of any object, its own old ones included.

    Args:
        layout: the scenes.
        obj: one object of each, which is present.
        least: pixels that it moves at least, along x or along y.
    """
    size, device = layout.spec.size, layout.device
    x, y, side = (column.gather(1, obj[:, None]) for column in (layout.x, layout.y, layout.side))  # (B,1)
    hits = _hits(layout.all_objects(), layout.mask_of(obj))  # (B,2H,2H): by shift, modulo 2H
    at = torch.arange(size, device=device)  # (H,)
    rows, columns = (at - y) % (2 * size), (at - x) % (2 * size)  # (B,H), (B,W)
    scene = torch.arange(len(obj), device=device)[:, None, None]  # (B,1,1)
    free = hits[scene, rows[:, :, None], columns[:, None, :]] < 0.5  # (B,H,W); counts, but for rounding
    free &= ((at <= size - side)[:, :, None]) & ((at <= size - side)[:, None, :])
    free &= ((at - y).abs() >= least)[:, :, None] | ((at - x).abs() >= least)[:, None, :]
    number = free.flatten(1).sum(1)  # (B,)
    wanted = uniform_below(hash_u32(layout.seed, layout.index, obj, _PLACE), number.clamp(min=1))  # (B,)
    place = (free.flatten(1).cumsum(1) <= wanted[:, None]).sum(1)  # (B,): the how-manieth pixel
    found = number > 0
    return FreePlaces(
        torch.where(found, place % size, x.squeeze(1)), torch.where(found, place // size, y.squeeze(1)), found
    )


def _hits(occupied: Tensor, mask: Tensor) -> Tensor:
    """How many pixels of ``mask`` (B,H,W) fall on ``occupied`` (B,H,W) at every shift: (B,2H,2W), modulo its sides."""
    size = (2 * occupied.shape[1], 2 * occupied.shape[2])
    ground, own = (torch.fft.rfft2(each.float(), s=size) for each in (occupied, mask))  # (B,2H,W+1)
    hits: Tensor = torch.fft.irfft2(ground * own.conj(), s=size)
    return hits
