"""What lies behind the digits: distractors, clutter, a patch, and the black of the reference set.

A background sees the glyphs of the split, the seed and the number of the scene, never its digits. So all sets hold the
same digits at the same places, and an edited scene keeps its background to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from saccade.data.scenes.drawing import (
    COLOURS,
    FRACTION_BITS,
    GLYPH,
    Drawing,
    divided_by_255,
    drawn_as_authors,
    painted,
    resized,
    rgb,
)
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import (
    distinct_below,
    hash_more,
    hash_state,
    hash_u32,
    hash_words,
    rounded_normal,
    uniform_below,
    uniform_pair_below,
)
from saccade.data.scenes.kernels import try_kernel

# First stream of draws within a scene that belongs to its background; those below make the digits.
BACKGROUND_DRAWS = 50


class Background(Protocol):
    """Makes the pictures that digits are pasted on."""

    @property
    def name(self) -> str:
        """Says what it is, of which material and how much of it; goes into results."""
        ...

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Pictures (B, 3, size, size) uint8 for the scenes ``indices`` (B,); the caller may write into them."""
        ...


@dataclass(frozen=True)
class Black:
    """MREF: nothing but the digits."""

    name: str = "black"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Zeros."""
        return torch.zeros(len(indices), 3, size, size, dtype=torch.uint8, device=indices.device)


_SOURCE, _COLOUR, _PLACE = range(BACKGROUND_DRAWS, BACKGROUND_DRAWS + 3)


@dataclass(frozen=True)
class Distractors:
    """Crops of glyphs on black; the defaults are the authors'."""

    count: int = 17
    """Crops in a picture."""
    crop: int = 5
    """Side of a crop before it is scaled."""
    scale: tuple[float, float] = (0.5, 3.0)
    """Range of the scale, upper end excluded; the side in pixels is cut to a whole number."""
    noise: float = 10.0
    """Standard deviation of the one number added to all three channels of a crop's colour."""

    drawing: Drawing = "blend"
    """How crops are coloured and added, see ``drawing.py``."""

    @property
    def name(self) -> str:
        """Their number, as in ``distractors-17``."""
        return f"distractors-{self.count}"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Black, with crops added."""
        number = torch.arange(self.count, device=indices.device)
        scene = hash_state(seed, indices[:, None])  # lanes (B, 1)
        draws = torch.arange(_SOURCE, _PLACE + 1, device=indices.device)[:, None, None]
        first_words, second_words = hash_words(scene, draws, number)  # (3, B, K) each
        for_glyph, for_colour, for_scale = first_words
        for_offset, for_noise, for_place = second_words

        low, high = (round(self.crop * scale * (1 << FRACTION_BITS)) for scale in self.scale)
        side = (low + uniform_below(for_scale, high - low)) >> FRACTION_BITS  # (B, K)
        largest = (high - 1) >> FRACTION_BITS
        colour = rgb(uniform_below(for_colour, len(COLOURS)), rounded_normal(for_noise, self.noise))  # (B, K, 3)
        x, y = uniform_pair_below(for_place, size + 1 - side)
        left, top = uniform_pair_below(for_offset, GLYPH - self.crop)  # as the authors draw it: 0 … 28 − crop − 1
        # Where the crop of each glyph begins in the flattened glyphs.
        corner = (uniform_below(for_glyph, len(glyphs)) * GLYPH + top) * GLYPH + left  # (B, K)
        as_authors = drawn_as_authors(self.drawing, indices)  # (B,) or None

        def by_one_kernel() -> Tensor:
            from saccade.data.scenes.kernels.painting import strew

            images = torch.zeros(len(indices), 3, size, size, dtype=torch.uint8, device=indices.device)
            strew(images, glyphs, corner, side, x, y, colour, as_authors, crop=self.crop, largest=largest)
            return images

        images = try_kernel(by_one_kernel, indices.device, size)
        if images is None:
            along = torch.arange(self.crop, device=indices.device)
            inside = along[:, None] * GLYPH + along  # (crop, crop)
            crops = glyphs.images.flatten()[corner.flatten()[:, None, None] + inside]  # (B·K, crop, crop) uint8
            ink = resized(crops, side.flatten(), largest).int()  # (B·K, p, p)
            images = _added(ink.view(*side.shape, largest, largest), colour.int(), x, y, size, as_authors)
        return images


def _added(ink: Tensor, colour: Tensor, x: Tensor, y: Tensor, size: int, as_authors: Tensor | None) -> Tensor:
    """The sum of crops with left edges ``x`` and top edges ``y`` (B, K): (B, 3, size, size) uint8.

    ``ink`` (B, K, p, p) int32 is empty beyond each crop's own side; ``colour`` (B, K, 3). Sums wrap around in the
    scenes ``as_authors`` (B,), else they stop at 255.
    """
    batch, padding = len(ink), ink.shape[-1]
    width = size + padding  # room at the right and below for the empty part of a crop
    scene = torch.arange(batch, device=ink.device)[:, None]
    corner = (scene * width + y) * width + x  # (B, K)
    along = torch.arange(padding, device=ink.device)
    at = (corner[..., None, None] + along[:, None] * width + along).flatten()  # (B·K·p·p,)
    images = torch.empty(batch, 3, size, size, dtype=torch.uint8, device=ink.device)
    canvas = torch.empty(batch, width, width, dtype=torch.int32, device=ink.device)
    for channel in range(3):
        shade = colour[..., channel, None, None]  # (B, K, 1, 1)
        light = divided_by_255(ink * shade)  # (B, K, p, p)
        if as_authors is not None:
            light = torch.where(as_authors[:, None, None, None], painted(shade, ink), light)
        canvas.zero_().view(-1).scatter_add_(0, at, light.flatten())
        if as_authors is not None:
            canvas[as_authors] &= 255
        images[:, channel] = canvas[:, :size, :size].clamp_(max=255)
    return images


_CUT_FROM, _CELL = range(BACKGROUND_DRAWS, BACKGROUND_DRAWS + 2)
PATCHES = 8  # Patches in a picture, as in the released generator


@dataclass(frozen=True)
class Clutter:
    """Bits of digits on black: a :class:`~saccade.data.scenes.backgrounds.Background`."""

    name: str = "clutter"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Grey clutter."""
        return strewn(glyphs, seed, indices, size, PATCHES)[:, None].repeat(1, 3, 1, 1)


def strewn(glyphs: GlyphSet, seed: int, indices: Tensor, size: int, count: int) -> Tensor:
    """Grey pictures (B, size, size) uint8 of nothing but ``count`` patches of clutter; else as a background."""
    device, patch = indices.device, size // 20
    cells = size // patch
    number = torch.arange(count, device=device)
    scene = hash_state(seed, indices[:, None])  # lanes (B, 1)
    for_glyph, for_offset = hash_words(scene, _CUT_FROM, number)  # (B, K) each
    cell = distinct_below(hash_more(scene, _CELL, number), cells * cells, count)  # (B, K)

    left, top = uniform_pair_below(for_offset, GLYPH + 1 - patch)
    source = (uniform_below(for_glyph, len(glyphs)) * GLYPH + top) * GLYPH + left  # (B, K) in the flattened glyphs
    picture = torch.arange(len(indices), device=device)[:, None]
    target = (picture * size + cell // cells * patch) * size + cell % cells * patch  # (B, K)
    row = torch.arange(patch, device=device)[:, None]
    column = torch.arange(patch, device=device)
    canvas = torch.zeros(len(indices), size, size, dtype=torch.uint8, device=device)
    cut = glyphs.images.view(-1)[source[..., None, None] + row * GLYPH + column]  # (B, K, patch, patch)
    canvas.view(-1)[target[..., None, None] + row * size + column] = cut
    return canvas


SIDE = 12  # Side of the patch, in pixels
_CORNER_COLOUR = BACKGROUND_DRAWS + 40  # after the draws of every background that may lie behind it


@dataclass(frozen=True)
class Cornered:
    """A background with the patch in its upper left corner."""

    behind: Background  # What lies behind the patch
    step: int = 0  # How many colours further than the scene's own

    @property
    def name(self) -> str:
        """What lies behind it, and the patch."""
        return f"{self.behind.name}, patch in the corner"

    def colours(self, seed: int, indices: Tensor) -> Tensor:
        """(B,) id in ``COLOURS`` of the patch of each scene."""
        return (uniform_below(hash_u32(seed, indices, _CORNER_COLOUR), len(COLOURS)) + self.step) % len(COLOURS)

    def mask(self, size: int, device: torch.device) -> Tensor:
        """(size, size) bool: its pixels, where no digit lies over them."""
        mask = torch.zeros(size, size, dtype=torch.bool, device=device)
        mask[:SIDE, :SIDE] = True
        return mask

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """What lies behind, with the patch."""
        images = self.behind(glyphs, seed, indices, size)
        colour = self.colours(seed, indices)  # (B,)
        images[:, :, :SIDE, :SIDE] = rgb(colour, torch.zeros_like(colour)).to(torch.uint8)[:, :, None, None]
        return images
