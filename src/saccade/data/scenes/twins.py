"""Twins of a scene: the same scene with one thing changed, drawn from the number of the scene.

What is drawn depends on the seed, the number of the scene and the slot of the object, on nothing else. So a twin is
always the same:

=============  ========================================================================================================
recoloured      one of the other four colours; the object's own noise stays
moved           a place on free ground: its box touches no ink of the scene, that of the object itself included, and it
                lies :data:`CELL` pixels or more away, along x or along y. Found by trying: an object for which no try
                fits cannot be moved
removed         gone; what lay behind it shows
background      another draw of the same kind; behind scenes on black, the distractors of MDIST
=============  ========================================================================================================

Free ground keeps old and new place apart: a map that stays where it was has nothing on the new one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.data.scenes.backgrounds import Background, Black, Distractors
from saccade.data.scenes.drawing import COLOURS, Drawing
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import derive_seed, hash_more, hash_state, hash_u32, uniform_below, uniform_pair_below
from saccade.data.scenes.layout import SceneLayout
from saccade.errors import DataError

CELL = 16  # Pixels from a cell to the next in the coarsest grid of the models (4 × 4 cells on 100 × 100 pixels)
# Places tried for an object that is moved. Of objects that have a free place, about one in thirty is missed.
TRIES = 256
OTHER, OTHER_COLOUR, TARGET_COLOUR, PLACE, BACKGROUND = range(101, 106)  # draws on top of those that make a scene


def drawn_bits(layout: SceneLayout, obj: Tensor, draw: int) -> Tensor:
    """(B,) 32 random bits for the object ``obj`` (B,) of each scene."""
    return hash_u32(layout.seed, layout.index, obj, draw)


def other_object(layout: SceneLayout, obj: Tensor) -> Tensor:
    """(B,) a present object that is not ``obj`` (B,).

    Raises:
        DataError: a scene has no other.
    """
    others = layout.present.scatter(1, obj[:, None], False)  # (B, N)
    number = others.sum(dim=1)
    if not bool((number > 0).all()):
        raise DataError("a scene holds no other digit to change")
    wanted = uniform_below(drawn_bits(layout, obj, OTHER), number)  # (B,) the how-manieth of them
    return (others.cumsum(dim=1) <= wanted[:, None]).sum(dim=1)


def other_colour(layout: SceneLayout, obj: Tensor, bits: Tensor) -> Tensor:
    """(B,) a colour that the object ``obj`` (B,) does not have, chosen by ``bits`` (B,).

    They are :func:`drawn_bits` of the object asked for: with TARGET_COLOUR for itself, OTHER_COLOUR for another.
    """
    old = layout.colour.gather(1, obj[:, None]).squeeze(1)
    step = 1 + uniform_below(bits, len(COLOURS) - 1)
    return (old + step) % len(COLOURS)


class Places(NamedTuple):
    """Where objects can be moved, such as the N of each of B scenes."""

    x: Tensor  # (B, N) left edge of the new box
    y: Tensor  # (B, N) top edge
    found: Tensor  # (B, N) bool: the object is present, and a place was found for it

    def of(self, rows: Tensor | slice) -> Places:
        """Those of some scenes."""
        return Places(*(column[rows] for column in self))


def free_places(layout: SceneLayout, *, least: int = CELL) -> Places:
    """A place on free ground for each object: the first of some draws that fits, see the module.

    Args:
        layout: the scenes.
        least: pixels between old and new place, along x or along y.
    """
    size, (batch, slots) = layout.spec.size, layout.present.shape
    ink = torch.zeros(batch, size + 1, size + 1, dtype=torch.int32, device=layout.device)
    ink[:, 1:, 1:] = layout.all_objects().to(torch.int32).cumsum(1).cumsum(2)  # inked pixels above and left
    slot = torch.arange(slots, device=layout.device)
    state = hash_state(layout.seed, layout.index[:, None], slot, PLACE)  # lanes (B, N)
    number = torch.arange(TRIES, device=layout.device)
    bits = hash_more((state[0][..., None], state[1][..., None]), number)  # (B, N, tries)
    side = layout.side[..., None]  # (B, N, 1)
    x, y = uniform_pair_below(bits, size + 1 - side)
    rows = (ink.view(batch, -1), size + 1)
    met = _at(rows, y + side, x + side) - _at(rows, y, x + side) - _at(rows, y + side, x) + _at(rows, y, x)
    far = ((x - layout.x[..., None]).abs() >= least) | ((y - layout.y[..., None]).abs() >= least)
    fits = (met == 0) & far & layout.present[..., None]  # (B, N, tries)
    first = fits.int().argmax(-1, keepdim=True)  # (B, N, 1): the first of equals
    return Places(*(each.gather(-1, first).squeeze(-1) for each in (x, y, fits)))


def move_to(layout: SceneLayout, obj: Tensor, places: Places) -> SceneLayout:
    """The object ``obj`` (B,) of each scene moved to its place, which was found."""
    at = obj[:, None]
    moved = layout.move(obj, places.x.gather(1, at).squeeze(1), places.y.gather(1, at).squeeze(1))
    return replace(moved, may_overlap=layout.may_overlap)  # on free ground nothing overlaps


def on_other_background(layout: SceneLayout) -> SceneLayout:
    """The same objects with something else behind them."""
    spec = layout.spec
    return replace(layout, spec=replace(spec, background=other_background(spec.background, spec.drawing)))


def other_background(background: Background, drawing: Drawing = "blend") -> Background:
    """Another draw of ``background``; for black, the distractors of MDIST."""
    return Distractors(drawing=drawing) if isinstance(background, Black) else DrawnAnew(background)


@dataclass(frozen=True)
class DrawnAnew:
    """A background as another seed draws it."""

    background: Background

    @property
    def name(self) -> str:
        """That of the background, and that it is drawn anew."""
        return f"{self.background.name}, drawn anew"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Pictures (B, 3, size, size) uint8."""
        return self.background(glyphs, derive_seed(seed, BACKGROUND), indices, size)


def _at(rows: tuple[Tensor, int], y: Tensor, x: Tensor) -> Tensor:
    """Entries (B, N, tries) of flattened tables (B, ·) with rows of a given length."""
    table, length = rows
    return table.gather(1, (y * length + x).flatten(1)).view(y.shape)
