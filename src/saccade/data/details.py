"""Layouts of pictures whose class depends on a small detail: a pure function of (seed, picture number).

A picture of 224×224 pixels shows four discs on a blurred, noisy ground. One of them, the **bearer**, has a light rim
and is red, green or blue. Every disc carries a mark of 19 pixels, woven of stripes in one of four directions. The class
is colour and direction of the bearer: twelve classes. The stripes are finer than a picture of 112×112 pixels can hold:
a coarse view shows where to look and which colour it is. The evidence is the mark.

Discs lie in distinct cells of a grid of 3×3, so no two touch. Pixels are whole numbers, the same on every device and in
any batch.

**What half the size keeps.** A weave is cos 2π(f_x·x + f_y·y) with f = (5/12, 0), (0, 5/12), (4/12, 4/12) or
(4/12, −4/12) cycles a pixel, in a table of 12×12 whole numbers. A view of half the size holds at most ¼ cycle a pixel
in each direction. The triangle filter that shrinks by two, (1, 3, 3, 1)/8, leaves cos³(πf) of a wave along each axis:
cos³ 75° = 1.7 % of upright and level stripes, (cos³ 60°)² = 1.6 % of slanting ones. Of 56 grey levels that is one,
under noise of σ ≈ 17 (5 in the smaller view). The networks of the recipes stay at chance there.

The ground is a lattice of 8×8 random colours, bilinear between them, as two products of small whole numbers that are
exact in any float format with 8 bits; discs have soft edges by integer arithmetic; noise comes from a store.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from saccade.data.scenes.hashing import (
    State,
    distinct_below,
    hash_more,
    hash_state,
    hash_u32,
    hash_words,
    uniform_below,
    uniform_pair_below,
)

SIZE = 224  # side of a picture
COLOURS = ("red", "green", "blue")
WEAVES = ("upright", "level", "rising", "falling")  # directions of the stripes
CLASSES = tuple(f"{colour} {weave}" for colour in COLOURS for weave in WEAVES)  # Class number = 4 · colour + weave
DISCS = 4
CELLS = 3  # in a row of the grid that discs are placed on
CELL = SIZE // CELLS
RADIUS = (20, 25)  # smallest and largest radius of a disc
REACH = RADIUS[1] + 2  # how far the soft edge of any disc goes from its middle pixel; its cell has room for that
RIM = 4  # width of the bearer's rim
MARK = 9  # radius of a mark
TILE = 12  # pixels after which every weave repeats
TINT = 20  # how far a disc's colour strays, up or down, in each channel

_CELL, _SIZE, _KIND, _OFFSET, _MARK, _PHASE, _TINT, _MOVE, _REWEAVE = range(9)  # streams of draws within a picture
_GROUND, _NOISE = 20, 21


CONTRAST = 56  # amplitude of the stripes in grey levels
GREY = 128  # mean of every mark, whatever its stripes
NOISE = 20  # the noise is the sum of two draws from −NOISE … NOISE

_RIM_COLOUR = (240, 240, 225)
_COLOURS = ((185, 75, 70), (75, 150, 80), (75, 90, 185))
_GROUND_LEVELS = (60, 180)  # grey levels of the ground's nodes, the second not included
_NODES = 8
_SPACING = SIZE // (_NODES - 1)
_STORE = 480  # side of the store of noise
_FREQUENCIES = ((5, 0), (0, 5), (4, 4), (4, -4))  # in cycles a tile; y goes down, so stripes of (4, 4) rise


@dataclass(frozen=True, eq=False, kw_only=True)
class DetailLayout:
    """B pictures of N discs, of which the first is the bearer; all int64."""

    seed: int
    index: Tensor  # (B,) number of the picture in its stream.
    ground: Tensor  # (B,) which ground it has: 0, or another number after an edit.
    x: Tensor  # (B,N) column of a disc's middle pixel.
    y: Tensor  # (B,N) row of a disc's middle pixel.
    radius: Tensor  # (B,N)
    colour: Tensor  # (B,N) 0 … 2
    weave: Tensor  # (B,N) 0 … 3
    mark_x: Tensor  # (B,N) column of the mark's middle pixel, from the disc's.
    mark_y: Tensor  # (B,N) row of the mark's middle pixel, from the disc's.
    phase: Tensor  # (B,N,2) how far the stripes are shifted, 0 … TILE − 1, as (x, y).
    tint: Tensor  # (B,N,3) added to the disc's colour, −TINT … TINT.

    def __len__(self) -> int:
        return len(self.index)

    @property
    def label(self) -> Tensor:
        """(B,) the class."""
        return self.colour[:, 0] * len(WEAVES) + self.weave[:, 0]

    @property
    def masks(self) -> Tensor:
        """(B,H,W) bool: the pixels of the evidence."""
        along = torch.arange(SIZE, device=self.index.device)
        across = (along - (self.x + self.mark_x)[:, :1]).square()[:, None, :]  # (B,1,W)
        down = (along - (self.y + self.mark_y)[:, :1]).square()[:, :, None]  # (B,H,1)
        return across + down <= MARK * MARK


def sample_details(seed: int, indices: Tensor) -> DetailLayout:
    """The pictures ``indices`` (B,) of the stream ``seed``, on the device of ``indices``."""
    indices = indices.long()
    picture = hash_state(seed, indices[:, None])  # lanes (B,1)
    disc = torch.arange(DISCS, device=indices.device)
    radius = RADIUS[0] + uniform_below(hash_more(picture, _SIZE, disc), RADIUS[1] + 1 - RADIUS[0])  # (B,N)
    cells = distinct_below(hash_more(picture, _CELL, disc), CELLS * CELLS, DISCS)  # (B,N), in no random order
    first = uniform_below(hash_more(picture, _CELL, DISCS), DISCS)  # (B,1): which of them the bearer gets
    cells = cells.gather(1, (disc + first) % DISCS)  # (B,N)
    colour_weave = uniform_below(hash_more(picture, _KIND, disc), len(CLASSES))  # (B,N)
    reach = (radius - RIM - MARK - 1) * 2 // 3  # the whole mark stays within the rim
    mark_x, mark_y = uniform_pair_below(hash_more(picture, _MARK, disc), 2 * reach + 1)  # (B,N)
    phase = torch.stack(uniform_pair_below(hash_more(picture, _PHASE, disc), TILE), dim=-1)  # (B,N,2)
    channel = torch.arange(3, device=indices.device)
    wider = (picture[0].unsqueeze(-1), picture[1].unsqueeze(-1))  # lanes (B,1,1)
    tint = uniform_below(hash_more(wider, _TINT, disc[:, None], channel), 2 * TINT + 1) - TINT  # (B,N,3)
    x, y = _placed(picture, cells, disc)
    return DetailLayout(
        seed=seed,
        index=indices,
        ground=torch.zeros_like(indices),
        x=x,
        y=y,
        radius=radius,
        colour=colour_weave // len(WEAVES),
        weave=colour_weave % len(WEAVES),
        mark_x=mark_x - reach,
        mark_y=mark_y - reach,
        phase=phase,
        tint=tint,
    )


def _placed(picture: State, cells: Tensor, disc: Tensor | int) -> State:
    """Middle pixels (x, y) of discs in their cells, with room for the largest disc: (B,N) each."""
    x, y = uniform_pair_below(hash_more(picture, _OFFSET, disc), CELL - 2 * REACH)
    return cells % CELLS * CELL + REACH + x, cells // CELLS * CELL + REACH + y


def moved(layout: DetailLayout) -> DetailLayout:
    """The bearer, with its mark, in one of the five free cells; all else stays."""
    picture = hash_state(layout.seed, layout.index[:, None])  # lanes (B,1)
    taken = layout.y // CELL * CELLS + layout.x // CELL  # (B,N)
    bits = hash_more(picture, _MOVE, torch.arange(CELLS * CELLS, device=layout.index.device))  # (B,9)
    cell = bits.scatter(1, taken, -1).argmax(1, keepdim=True)  # (B,1)
    x, y = _placed(picture, cell, DISCS)  # (B,1) each
    return replace(layout, x=_first(layout.x, x), y=_first(layout.y, y))


def rewoven(layout: DetailLayout) -> DetailLayout:
    """The bearer's mark with stripes in another direction: another class, and all else stays."""
    picture = hash_state(layout.seed, layout.index[:, None])
    step = 1 + uniform_below(hash_more(picture, _REWEAVE), len(WEAVES) - 1)  # (B,1)
    return replace(layout, weave=_first(layout.weave, (layout.weave[:, :1] + step) % len(WEAVES)))


def surrounded(layout: DetailLayout) -> DetailLayout:
    """The same bearer at the same place, on another ground and among the discs of another picture."""
    other = sample_details(layout.seed ^ 1, layout.index)
    home = layout.y[:, :1] // CELL * CELLS + layout.x[:, :1] // CELL  # (B,1)
    theirs = other.y // CELL * CELLS + other.x // CELL  # (B,N)
    cells = _first(torch.where(theirs == home, theirs[:, :1], theirs), home)  # who lay there goes where the bearer was
    bearer = {
        name: _first(getattr(other, name), getattr(layout, name)[:, :1])
        for name in ("radius", "colour", "weave", "mark_x", "mark_y", "phase", "tint")
    }
    x = other.x + (cells % CELLS - theirs % CELLS) * CELL
    y = other.y + (cells // CELLS - theirs // CELLS) * CELL
    x, y = _first(x, layout.x[:, :1]), _first(y, layout.y[:, :1])
    return replace(other, seed=layout.seed, ground=layout.ground + 1, x=x, y=y, **bearer)


def _first(tensor: Tensor, value: Tensor) -> Tensor:
    """``tensor`` (B,N,…) with ``value`` (B,1,…) in the first column."""
    return torch.cat([value, tensor[:, 1:]], dim=1)


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
    dy, dx = (axis.flatten() for axis in torch.meshgrid(along, along, indexing="ij"))  # (P,) each
    x, y, radius = (axis[:, disc, None] for axis in (layout.x, layout.y, layout.radius))  # (B,1) each
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
    low, high = _GROUND_LEVELS
    node = torch.arange(3 * _NODES * _NODES, device=layout.index.device)
    bits = hash_more(_behind(layout), _GROUND, node).reshape(-1, 3, _NODES, _NODES)  # (B,3,8,8)
    nodes = (low + uniform_below(bits, high - low)).float()
    weights = _lattice(layout.index.device)  # (H,8), in parts of 2 · _SPACING
    with torch.autocast(nodes.device.type, enabled=False):
        down = (weights @ nodes / (2 * _SPACING)).add_(0.5).floor_()  # (B,3,H,8): whole numbers again
        return (down @ weights.T / (2 * _SPACING)).add_(0.5).floor_().short()


def _noise(layout: DetailLayout) -> Tensor:
    windows = _noise_store(layout.index.device).unfold(0, SIZE, 1).unfold(1, SIZE, 1)  # (K,K,H,W), no copy
    low, high = hash_words(_behind(layout), _NOISE, torch.arange(3, device=layout.index.device))  # (B,3) each
    return windows[uniform_below(low, windows.shape[0]), uniform_below(high, windows.shape[0])]


def _behind(layout: DetailLayout) -> State:
    """The hash state, lanes (B,1), from which ground and noise of each picture are drawn."""
    return hash_state(layout.seed, layout.index[:, None], layout.ground[:, None])


@lru_cache(maxsize=8)
def _lattice(device: torch.device) -> Tensor:
    """(SIZE,8): how much each node gives to each pixel of a row, whole numbers that sum to 2 · _SPACING."""
    centre = 2 * torch.arange(SIZE)[:, None] + 1  # in half pixels
    node = 2 * _SPACING * torch.arange(_NODES)
    return (2 * _SPACING - (centre - node).abs()).clamp(min=0).float().to(device)


@lru_cache(maxsize=8)
def _noise_store(device: torch.device) -> Tensor:
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
