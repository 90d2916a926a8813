"""Scenes as integers: which digits, how large, where, and in which colour; and edits of one object.

A layout is the whole description of a scene, and so the truth to score against: boxes, masks, classes and
scales are read from it, and a scene with one object changed is an edited layout, rendered again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from saccade.data.scenes.backgrounds import Background, Black
from saccade.data.scenes.drawing import COLOURS, FRACTION_BITS, GLYPH, Drawing, rgb
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.render import inked_pixels


class PictureSpec(Protocol):
    """What a layout must know of how its scenes are drawn."""

    @property
    def size(self) -> int:
        """Side of the picture in pixels."""
        ...

    @property
    def largest(self) -> int:
        """The largest side of a glyph in whole pixels."""
        ...


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
        """The scale range as sides in 2⁻¹⁶ px, upper end excluded."""
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
        """Give object ``obj`` (B,) of each scene the colour ``colour`` (B,); its noise stays."""
        return replace(self, colour=with_object(self.colour, obj, colour))

    def facts(self) -> list[list[dict[str, object]]]:
        """What is true of each digit of every scene, for the files that hold it."""
        columns = (self.count, self.classes, self.colour, self.rgb, self.boxes, self.scale)
        return [
            [
                {"class": digit, "colour": COLOURS[colour], "rgb": rgb, "box": box, "scale": round(scale, 4)}
                for digit, colour, rgb, box, scale in list(zip(*scene))[:count]
            ]
            for count, *scene in zip(*(column.tolist() for column in columns))
        ]
