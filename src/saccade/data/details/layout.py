"""Layouts of pictures whose class depends on a small detail: a pure function of (seed, picture number).

A picture of 224×224 pixels shows four discs on a blurred, noisy ground. One of them, the **bearer**, has a light rim.
It is red, green or blue. Every disc carries a mark of 19 pixels, woven of stripes in one of four directions. The class
is colour and direction of the bearer: twelve classes. The bearer and its colour show at any size. The stripes are finer
than a picture of 112×112 pixels can hold: at half the size all four marks look the same grey, and what is left of the
stripes lies far under the noise (``render.py``). So a coarse view says where to look and which colour it is, and a
network learns no more from it. The evidence is the mark.

The other discs have striped marks too, so finding stripes is not enough: they must be the stripes of the bearer.

Discs lie in distinct cells of a grid of 3×3, each with an offset of its own, so no two touch. An edit gives another
layout, which is rendered again: the bearer elsewhere (:func:`moved`), another mark (:func:`rewoven`), or the same
bearer among other discs and on another ground (:func:`surrounded`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from saccade.data.scenes.hashing import (
    State,
    distinct_below,
    hash_more,
    hash_state,
    hash_words,
    uniform_below,
    uniform_pair_below,
)
from saccade.errors import DataError

SIZE = 224
"""Side of a picture."""
COLOURS = ("red", "green", "blue")
WEAVES = ("upright", "level", "rising", "falling")
"""Directions of the stripes."""
CLASSES = tuple(f"{colour} {weave}" for colour in COLOURS for weave in WEAVES)
"""Class number = 4 · colour + weave."""
DISCS = 4
CELLS = 3
"""Cells in a row of the grid that discs are placed on."""
CELL = SIZE // CELLS
RADIUS = (20, 25)
"""Smallest and largest radius of a disc."""
REACH = RADIUS[1] + 2
"""How far the soft edge of any disc goes from its middle pixel; its cell has room for that."""
RIM = 4
"""Width of the bearer's rim."""
MARK = 9
"""Radius of a mark."""
TILE = 12
"""Pixels after which every weave repeats."""
TINT = 20
"""How far a disc's colour strays, up or down, in each channel."""

_CELL, _SIZE, _KIND, _OFFSET, _MARK, _PHASE, _TINT, _MOVE, _REWEAVE = range(9)  # streams of draws within a picture
_GROUND, _NOISE = 20, 21


@dataclass(frozen=True, eq=False, kw_only=True)
class DetailLayout:
    """B pictures of N discs, of which the first is the bearer; all int64."""

    seed: int
    index: Tensor
    """(B,) number of the picture in its stream."""
    ground: Tensor
    """(B,) which ground it has: 0, or another number after an edit."""
    x: Tensor
    """(B,N) column of a disc's middle pixel."""
    y: Tensor
    """(B,N) row of a disc's middle pixel."""
    radius: Tensor
    """(B,N)"""
    colour: Tensor
    """(B,N) 0 … 2"""
    weave: Tensor
    """(B,N) 0 … 3"""
    mark_x: Tensor
    """(B,N) column of the mark's middle pixel, from the disc's."""
    mark_y: Tensor
    """(B,N) row of the mark's middle pixel, from the disc's."""
    phase: Tensor
    """(B,N,2) how far the stripes are shifted, 0 … TILE − 1, as (x, y)."""
    tint: Tensor
    """(B,N,3) added to the disc's colour, −TINT … TINT."""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def label(self) -> Tensor:
        """(B,) the class."""
        return self.colour[:, 0] * len(WEAVES) + self.weave[:, 0]

    @property
    def boxes(self) -> Tensor:
        """(B,4) xyxy of the evidence, the bearer's mark, in pixels; float64."""
        x, y = (self.x + self.mark_x)[:, 0], (self.y + self.mark_y)[:, 0]
        return torch.stack([x - MARK, y - MARK, x + MARK + 1, y + MARK + 1], dim=1).double()

    @property
    def masks(self) -> Tensor:
        """(B,H,W) bool: the pixels of the evidence."""
        along = torch.arange(SIZE, device=self.index.device)
        across = (along - (self.x + self.mark_x)[:, :1]).square()[:, None, :]  # (B,1,W)
        down = (along - (self.y + self.mark_y)[:, :1]).square()[:, :, None]  # (B,H,1)
        return across + down <= MARK * MARK

    def __getitem__(self, rows: Tensor) -> DetailLayout:
        """The pictures in ``rows`` (K,)."""
        tensors = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "seed"}
        return replace(self, **{name: tensor[rows] for name, tensor in tensors.items()})


def sample_details(seed: int, indices: Tensor) -> DetailLayout:
    """The pictures ``indices`` (B,) of the stream ``seed``, on the device of ``indices``."""
    indices = indices.long()
    if len(indices) and int(indices.min()) < 0:
        raise DataError(f"pictures are numbered from 0, found {int(indices.min())}")
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
    tint = uniform_below(hash_more(_wider(picture), _TINT, disc[:, None], channel), 2 * TINT + 1) - TINT  # (B,N,3)
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


def _wider(state: State) -> State:
    """Lanes with one more axis behind: (B,1) → (B,1,1)."""
    return state[0].unsqueeze(-1), state[1].unsqueeze(-1)


def _placed(picture: State, cells: Tensor, disc: Tensor | int) -> State:
    """Middle pixels (x, y) of discs in their cells, with room for the largest disc: (B,N) each."""
    x, y = uniform_pair_below(hash_more(picture, _OFFSET, disc), CELL - 2 * REACH)
    return cells % CELLS * CELL + REACH + x, cells // CELLS * CELL + REACH + y


def moved(layout: DetailLayout) -> DetailLayout:
    """The bearer, with its mark, in one of the five cells that hold no disc; all else stays."""
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
    own = layout.y[:, :1] // CELL * CELLS + layout.x[:, :1] // CELL  # (B,1)
    theirs = other.y // CELL * CELLS + other.x // CELL  # (B,N)
    cells = _first(torch.where(theirs == own, theirs[:, :1], theirs), own)  # who lay there goes where the bearer was
    kept = {
        name: _first(getattr(other, name), getattr(layout, name)[:, :1])
        for name in ("radius", "colour", "weave", "mark_x", "mark_y", "phase", "tint")
    }
    x = other.x + (cells % CELLS - theirs % CELLS) * CELL
    y = other.y + (cells // CELLS - theirs // CELLS) * CELL
    x, y = _first(x, layout.x[:, :1]), _first(y, layout.y[:, :1])
    return replace(other, seed=layout.seed, ground=layout.ground + 1, x=x, y=y, **kept)


def _first(tensor: Tensor, value: Tensor) -> Tensor:
    """``tensor`` (B,N,…) with ``value`` (B,1,…) in the first column."""
    return torch.cat([value, tensor[:, 1:]], dim=1)


def ground_bits(layout: DetailLayout, nodes: int) -> Tensor:
    """(B,3,nodes,nodes) 32 random bits for each node of the ground."""
    picture = hash_state(layout.seed, layout.index[:, None], layout.ground[:, None])  # lanes (B,1)
    node = torch.arange(3 * nodes * nodes, device=layout.index.device)
    return hash_more(picture, _GROUND, node).reshape(-1, 3, nodes, nodes)


def noise_offsets(layout: DetailLayout, bound: int) -> tuple[Tensor, Tensor]:
    """Where in the store of noise each channel of a picture begins: (B,3) rows and (B,3) columns below ``bound``."""
    picture = hash_state(layout.seed, layout.index[:, None], layout.ground[:, None])
    low, high = hash_words(picture, _NOISE, torch.arange(3, device=layout.index.device))  # (B,3) each
    return uniform_below(low, bound), uniform_below(high, bound)
