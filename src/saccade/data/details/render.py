"""Pixels of the pictures in ``layout.py``, in whole numbers: the same on every device and in any batch.

**What half the size keeps.** A weave is cos 2π(f_x·x + f_y·y) with f = (5/12, 0), (0, 5/12), (4/12, 4/12) or
(4/12, −4/12) cycles a pixel, in a table of 12×12 whole numbers. A view of half the size holds at most ¼ cycle a pixel
in each direction. The triangle filter that shrinks by two, (1, 3, 3, 1)/8, leaves cos³(πf) of a wave along each axis:
cos³ 75° = 1.7 % of upright and level stripes, (cos³ 60°)² = 1.6 % of slanting ones. Of an amplitude of 56 grey levels
that is one level, under noise of σ ≈ 17 levels (5 in the smaller view).

That is little, but not nothing. A filter that is told where the mark lies and which four waves there are fits each of
them to the small view and takes the best fit: it names the right direction in half of the pictures, where chance is a
quarter. The networks of the recipes do not learn to: at half the size they stay at chance (``docs/results.md``).

The ground is a lattice of 8×8 random colours, bilinear between them, as two products of small whole numbers that are
exact in any float format with 8 bits; discs have soft edges by integer arithmetic; noise comes from a store.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from saccade.data.details.layout import MARK, REACH, RIM, SIZE, TILE, DetailLayout, ground_bits, noise_offsets
from saccade.data.scenes.hashing import hash_u32, uniform_below

CONTRAST = 56
"""Amplitude of the stripes in grey levels."""
GREY = 128
"""Mean of every mark, whatever its stripes."""
NOISE = 20
"""The noise is the sum of two draws from −NOISE … NOISE."""

_RIM_COLOUR = (240, 240, 225)
_COLOURS = ((185, 75, 70), (75, 150, 80), (75, 90, 185))
_GROUND = (60, 180)  # grey levels of the ground's nodes, the second not included
_NODES = 8
_SPACING = SIZE // (_NODES - 1)
_STORE = 480  # side of the store of noise
_FREQUENCIES = ((5, 0), (0, 5), (4, 4), (4, -4))  # in cycles a tile; y goes down, so stripes of (4, 4) rise


def render_details(layout: DetailLayout) -> Tensor:
    """The pictures of a layout: (B,3,H,W) uint8."""
    canvas = _ground(layout)  # (B,3,H,W) int16
    flat = canvas.flatten(2)  # (B,3,H·W), the same memory
    for disc in range(layout.x.shape[1]):
        at, colour, alpha = _patch(layout, disc)
        below = flat.gather(2, at)  # (B,3,P)
        flat.scatter_(2, at, _over(below, colour, alpha))
    canvas += _noise(layout)
    return canvas.clamp_(0, 255).byte()


def _patch(layout: DetailLayout, disc: int) -> tuple[Tensor, Tensor, Tensor]:
    """One disc of every picture: the pixels of its patch (B,3,P), its colours (B,3,P) and its opacity (B,1,P)."""
    device = layout.index.device
    along = torch.arange(-REACH, REACH + 1, device=device)
    dy, dx = (each.flatten() for each in torch.meshgrid(along, along, indexing="ij"))  # (P,) each
    x, y, radius = (each[:, disc, None] for each in (layout.x, layout.y, layout.radius))  # (B,1) each
    at = ((y + dy) * SIZE + x + dx)[:, None].expand(-1, 3, -1)  # (B,3,P); no patch leaves the picture
    distance = dx.square() + dy.square()  # (P,)
    tones = torch.tensor(_COLOURS, device=device)
    body = tones[layout.colour[:, disc]] + layout.tint[:, disc]  # (B,3)
    rim = body if disc else torch.tensor(_RIM_COLOUR, device=device).expand_as(body)
    colour = _over(rim[:, :, None], body[:, :, None], _disc(distance, radius - RIM)[:, None])  # (B,3,P)
    mark_x, mark_y = layout.mark_x[:, disc, None], layout.mark_y[:, disc, None]  # (B,1) each
    from_mark = (dx - mark_x).square() + (dy - mark_y).square()  # (B,P)
    phase = layout.phase[:, disc]  # (B,2)
    tile_x, tile_y = (dx - mark_x + phase[:, :1]) % TILE, (dy - mark_y + phase[:, 1:]) % TILE  # (B,P) each
    woven = GREY + _weaves(device)[layout.weave[:, disc, None], tile_y, tile_x]  # (B,P)
    inside = _disc(from_mark, torch.full_like(radius, MARK))  # (B,P)
    colour = _over(colour, woven[:, None], inside[:, None])
    alpha = _disc(distance, radius)[:, None]  # (B,1,P)
    return at, colour.short(), alpha.short()


def _disc(distance: Tensor, radius: Tensor) -> Tensor:
    """How opaque a disc is, 0 … 256, at squared ``distance`` (…,P) from its middle: a soft edge of about two pixels."""
    return ((radius * radius - distance) * 128 // radius + 128).clamp(0, 256)


def _over(below: Tensor, above: Tensor, alpha: Tensor) -> Tensor:
    """``above`` laid over ``below``, of 256 parts ``alpha``, rounded; in whole numbers."""
    mixed = (below.int() * (256 - alpha.int()) + above.int() * alpha.int() + 128) >> 8
    return mixed.to(below.dtype)


def _ground(layout: DetailLayout) -> Tensor:
    """(B,3,H,W) int16: random colours at the nodes of a lattice, bilinear between them."""
    low, high = _GROUND
    nodes = (low + uniform_below(ground_bits(layout, _NODES), high - low)).float()  # (B,3,8,8)
    weights = _lattice(layout.index.device)  # (H,8), in parts of 2 · _SPACING
    with torch.autocast(nodes.device.type, enabled=False):
        down = (weights @ nodes / (2 * _SPACING)).add_(0.5).floor_()  # (B,3,H,8): whole numbers again
        return (down @ weights.T / (2 * _SPACING)).add_(0.5).floor_().short()


def _noise(layout: DetailLayout) -> Tensor:
    """(B,3,H,W) int16: windows of the store, each channel from a place of its own."""
    windows = _noise_store(layout.index.device).unfold(0, SIZE, 1).unfold(1, SIZE, 1)  # (K,K,H,W), no copy
    rows, columns = noise_offsets(layout, windows.shape[0])  # (B,3) each
    return windows[rows, columns]


@lru_cache(maxsize=8)
def _lattice(device: torch.device) -> Tensor:
    """(SIZE,8): how much each node gives to each pixel of a row, whole numbers that sum to 2 · _SPACING."""
    centre = 2 * torch.arange(SIZE)[:, None] + 1  # in half pixels
    node = 2 * _SPACING * torch.arange(_NODES)
    return (2 * _SPACING - (centre - node).abs()).clamp(min=0).float().to(device)


@lru_cache(maxsize=8)
def _noise_store(device: torch.device) -> Tensor:
    """(480,480) int16."""
    bits = hash_u32(0x5EED, torch.arange(_STORE)[:, None], torch.arange(_STORE), torch.arange(2)[:, None, None])
    return (uniform_below(bits, 2 * NOISE + 1) - NOISE).sum(0).short().to(device)


@lru_cache(maxsize=8)
def _weaves(device: torch.device) -> Tensor:
    """(4,12,12) int64: the four weaves, each with mean 0."""
    tables = [
        [[round(CONTRAST * math.cos(2 * math.pi * (fx * x + fy * y) / TILE)) for x in range(TILE)] for y in range(TILE)]
        for fx, fy in _FREQUENCIES
    ]
    return torch.tensor(tables, device=device)
