"""Scenes as integers: which digits, how large, where, in which colour; and their twins, with one thing changed.

A layout is the whole description of a scene, and so the truth to score against: boxes, masks, classes and scales are
read from it, and a twin is an edited layout, rendered again. What is drawn for a twin depends on the seed, the number
of the scene and the slot of the object, on nothing else:

=============  ========================================================================================================
recoloured      one of the other four colours; the object's own noise stays
moved           a place on free ground: its box touches no ink of the scene, that of the object itself included, and it
                lies :data:`CELL` pixels or more away, along x or along y. Found by trying: an object for which no try
                fits cannot be moved
removed         gone; what lay behind it shows
background      another draw of the same kind; behind scenes on black, the distractors of MDIST
=============  ========================================================================================================

So a map that stays where it was has nothing on the new place.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor

from saccade.data.scenes.backgrounds import Background, Black, Distractors
from saccade.data.scenes.drawing import COLOURS, FRACTION_BITS, GLYPH, Drawing, inked_pixels, rgb
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import derive_seed, hash_more, hash_state, hash_u32, uniform_below, uniform_pair_below


class PictureSpec(Protocol):
    """What a layout must know of how its scenes are drawn."""

    @property
    def size(self) -> int:
        """Side of the picture in pixels."""

    @property
    def largest(self) -> int:
        """The largest side of a glyph in whole pixels."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GlyphLayout:
    """Scenes as integers: B scenes with N object slots; slots beyond ``count`` are not ``present``."""

    spec: PictureSpec
    glyphs: GlyphSet
    seed: int
    index: Tensor  # (B,) number of the scene in its stream
    classes: Tensor  # (B, N) digit
    glyph: Tensor  # (B, N) id in ``glyphs``
    extent: Tensor  # (B, N) 28 · scale in 2⁻¹⁶ px
    x: Tensor  # (B, N) left edge of the box
    y: Tensor  # (B, N) top edge
    present: Tensor  # (B, N) bool
    # True after a move: sampled objects never share a pixel, moved ones may; the later slot is in front.
    may_overlap: bool = False

    def __len__(self) -> int:
        return len(self.index)

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.index.device

    @property
    def count(self) -> Tensor:
        """(B,) number of objects present."""
        return self.present.sum(dim=1)

    @property
    def side(self) -> Tensor:
        """(B, N) side of the box in pixels."""
        return self.extent >> FRACTION_BITS

    @property
    def scale(self) -> Tensor:
        """(B, N) float: 1 is 28 px."""
        return (self.extent.double() / (GLYPH << FRACTION_BITS)).float()

    @property
    def boxes(self) -> Tensor:
        """(B, N, 4) int64 xyxy in pixels, right and lower edge excluded; zeros where nothing is present."""
        corners = torch.stack([self.x, self.y, self.x + self.side, self.y + self.side], dim=-1)
        return corners * self.present[..., None]

    def masks(self) -> Tensor:
        """(B, N, H, W) bool: the visible (non-zero) pixels of each object."""
        masks = torch.zeros(*self.present.shape, self.spec.size**2, dtype=torch.bool, device=self.device)
        pixels = inked_pixels(self)
        masks.view(-1)[pixels.obj * masks.shape[-1] + pixels.position % masks.shape[-1]] = True
        return masks.view(*self.present.shape, self.spec.size, self.spec.size)

    def mask_of(self, obj: Tensor) -> Tensor:
        """(B, H, W) bool: the visible pixels of object ``obj`` (B,) of each scene."""
        pixels = inked_pixels(self)
        number = torch.arange(len(self), device=self.device) * self.present.shape[1] + obj  # (B,)
        scene = pixels.position // self.spec.size**2
        return self._marked(pixels.position[pixels.obj == number[scene]])

    def all_objects(self) -> Tensor:
        """(B, H, W) bool: the visible pixels of all objects together."""
        return self._marked(inked_pixels(self).position)

    def _marked(self, positions: Tensor) -> Tensor:
        marked = torch.zeros(len(self), self.spec.size, self.spec.size, dtype=torch.bool, device=self.device)
        marked.view(-1)[positions] = True
        return marked

    def __getitem__(self, rows: Tensor | slice) -> Self:
        """The scenes ``rows``, in that order, repeats allowed."""
        return replace(self, **{name: value[rows] for name, value in self.tensors().items()})

    def remove(self, obj: Tensor) -> Self:
        """Take object ``obj`` (B,) out of each scene."""
        return replace(self, present=with_object(self.present, obj, torch.zeros_like(obj, dtype=torch.bool)))

    def alone(self, obj: Tensor) -> Self:
        """Take all but object ``obj`` (B,) out of each scene."""
        return replace(self, present=torch.zeros_like(self.present).scatter(1, obj[:, None], True))

    def move(self, obj: Tensor, x: Tensor, y: Tensor) -> Self:
        """Put the upper left corner of object ``obj`` (B,) of each scene at ``x``, ``y`` (B,)."""
        return replace(self, x=with_object(self.x, obj, x), y=with_object(self.y, obj, y), may_overlap=True)

    def tensors(self) -> dict[str, Any]:
        """The columns by name: all fields that have a row for each scene."""
        values = {column.name: getattr(self, column.name) for column in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}


Layout = TypeVar("Layout", bound=GlyphLayout)


def join_layouts(layouts: list[Layout]) -> Layout:
    """Scenes of one stream, one after the other."""
    first = layouts[0]
    columns: dict[str, Any] = {name: torch.cat([getattr(part, name) for part in layouts]) for name in first.tensors()}
    return replace(first, may_overlap=any(part.may_overlap for part in layouts), **columns)


def with_object(values: Tensor, obj: Tensor, new: Tensor) -> Tensor:
    """``values`` (B, N) with ``new`` (B,) in the places ``obj`` (B,)."""
    return values.scatter(1, obj[:, None], new[:, None].to(values))


@dataclass(frozen=True)
class SceneSpec:
    """How scenes are drawn; the defaults are the authors' (MREF)."""

    size: int = 100
    """Side of the picture in pixels."""
    count: tuple[int, int] = (5, 9)
    """Fewest and most digits."""
    scale: tuple[float, float] = (0.5, 3.0)
    """Range of the glyphs' scale; 1 is 28 px."""
    noise: float = 10.0
    """Standard deviation of the one number added to all three channels of a colour."""
    max_tries: int = 400
    """Tries per digit before the scene's scales and positions are drawn anew; the authors had no limit."""
    background: Background = field(default_factory=Black)
    """What lies behind the digits."""
    drawing: Drawing = "blend"
    """How digits are laid on it, see ``drawing.py``; distractors have a setting of the same name."""

    @property
    def slots(self) -> int:
        """Length of the object axis."""
        return self.count[1]

    @property
    def extents(self) -> tuple[int, int]:
        """The range of sides in 2⁻¹⁶ px, upper end excluded."""
        low, high = (round(GLYPH * scale * (1 << FRACTION_BITS)) for scale in self.scale)
        return low, high

    @property
    def largest(self) -> int:
        """The largest side in whole pixels."""
        return (self.extents[1] - 1) >> FRACTION_BITS


@dataclass(frozen=True, eq=False, kw_only=True)
class SceneLayout(GlyphLayout):
    """Scenes of digits that are distinct and have colours."""

    spec: SceneSpec
    colour: Tensor  # (B, N) id in ``COLOURS``
    noise: Tensor  # (B, N) added to all channels of the colour

    @property
    def rgb(self) -> Tensor:
        """(B, N, 3) int64: the colours with their noise."""
        return rgb(self.colour, self.noise)

    def recolour(self, obj: Tensor, colour: Tensor) -> SceneLayout:
        """Give object ``obj`` (B,) of each scene another ``colour`` (B,); its noise stays."""
        return replace(self, colour=with_object(self.colour, obj, colour))

    def facts(self) -> list[list[dict[str, object]]]:
        """What is true of each digit of every scene, for files."""
        columns = (self.count, self.classes, self.colour, self.rgb, self.boxes, self.scale)
        return [
            [
                {"class": digit, "colour": COLOURS[colour], "rgb": rgb, "box": box, "scale": round(scale, 4)}
                for digit, colour, rgb, box, scale in list(zip(*scene))[:count]
            ]
            for count, *scene in zip(*(column.tolist() for column in columns))
        ]


CELL = 16  # Pixels from a cell to the next in the coarsest grid of the models (4 × 4 cells on 100 × 100 pixels)
# Places tried for an object that is moved. Of objects that have a free place, about one in thirty is missed.
TRIES = 256
OTHER, OTHER_COLOUR, TARGET_COLOUR, PLACE, BACKGROUND = range(101, 106)  # draws on top of those that make a scene


def drawn_from(choices: Tensor, bits: Tensor) -> Tensor:
    """(B,) the column of one of the True in each row of ``choices`` (B, N), by 32 random bits (B,)."""
    wanted = uniform_below(bits, choices.sum(1))  # (B,) the how-manieth
    return (choices.cumsum(1) <= wanted[:, None]).sum(1)


def other_object(layout: SceneLayout, obj: Tensor) -> Tensor:
    """(B,) a present object that is not ``obj`` (B,); every scene must hold two."""
    others = layout.present.scatter(1, obj[:, None], False)  # (B, N)
    return drawn_from(others, hash_u32(layout.seed, layout.index, obj, OTHER))


def other_colour(layout: SceneLayout, obj: Tensor, target: Tensor, draw: int) -> Tensor:
    """(B,) a colour that the object ``obj`` (B,) does not have, where ``target`` (B,) is asked for.

    ``draw`` is TARGET_COLOUR for the target itself, OTHER_COLOUR for another object.
    """
    old = layout.colour.gather(1, obj[:, None]).squeeze(1)
    step = 1 + uniform_below(hash_u32(layout.seed, layout.index, target, draw), len(COLOURS) - 1)
    return (old + step) % len(COLOURS)


class FreePlaces(NamedTuple):
    """Where objects can be moved, such as the N of each of B scenes."""

    x: Tensor  # (B, N) left edge of the new box
    y: Tensor  # (B, N) top edge
    found: Tensor  # (B, N) bool: the object is present, and a place was found for it


def free_places(layout: SceneLayout, *, least: int = CELL) -> FreePlaces:
    """A place on free ground for each object, ``least`` pixels away: the first of some draws that fits."""
    size, (batch, slots) = layout.spec.size, layout.present.shape
    ink = torch.zeros(batch, size + 1, size + 1, dtype=torch.int32, device=layout.device)
    ink[:, 1:, 1:] = layout.all_objects().to(torch.int32).cumsum(1).cumsum(2)  # inked pixels above and left
    slot = torch.arange(slots, device=layout.device)
    state = hash_state(layout.seed, layout.index[:, None], slot, PLACE)  # lanes (B, N)
    number = torch.arange(TRIES, device=layout.device)
    bits = hash_more((state[0][..., None], state[1][..., None]), number)  # (B, N, tries)
    side = layout.side[..., None]  # (B, N, 1)
    x, y = uniform_pair_below(bits, size + 1 - side)
    corners = ((y + side, x + side), (y, x + side), (y + side, x), (y, x))
    places = [(row * (size + 1) + column).flatten(1) for row, column in corners]
    counts = [ink.view(batch, -1).gather(1, place).view(x.shape) for place in places]  # (B, N, tries) each
    met = counts[0] - counts[1] - counts[2] + counts[3]
    far = ((x - layout.x[..., None]).abs() >= least) | ((y - layout.y[..., None]).abs() >= least)
    fits = (met == 0) & far & layout.present[..., None]  # (B, N, tries)
    first = fits.int().argmax(-1, keepdim=True)  # (B, N, 1): the first of equals
    return FreePlaces(*(tries.gather(-1, first).squeeze(-1) for tries in (x, y, fits)))


def move_to(layout: SceneLayout, obj: Tensor, places: FreePlaces) -> SceneLayout:
    """The object ``obj`` (B,) of each scene moved to its place, which was found."""
    at = obj[:, None]
    moved = layout.move(obj, places.x.gather(1, at).squeeze(1), places.y.gather(1, at).squeeze(1))
    return replace(moved, may_overlap=layout.may_overlap)  # on free ground nothing overlaps


def other_background(background: Background, drawing: Drawing = "blend") -> Background:
    """Another draw of ``background``; for black, the distractors of MDIST."""
    return Distractors(drawing=drawing) if isinstance(background, Black) else DrawnAnew(background)


@dataclass(frozen=True)
class DrawnAnew:
    """A background as another seed draws it."""

    background: Background

    @property
    def name(self) -> str:
        """As in ``distractors-17, drawn anew``."""
        return f"{self.background.name}, drawn anew"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Pictures (B, 3, size, size) uint8."""
        return self.background(glyphs, derive_seed(seed, BACKGROUND), indices, size)
