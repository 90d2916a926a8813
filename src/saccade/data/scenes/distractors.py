"""MDIST: fragments of digits, coloured and scaled like digits, scattered over the black background.

After Seo et al. (arXiv:1606.02393, §5.1) and the generator the authors released: seventeen 5 × 5 crops of random
glyphs a picture, each in one of the five colours with its own noise, its scale uniform in 0.5 … 3.0, added to the
background wherever it falls. Many crops are blank, as glyphs are mostly border. Digits ignore them: a position is
rejected only because of other digits.

The authors cut coloured crops to whole numbers and add bytes, which wrap around where crops of bright colours cross.
That is the drawing ``authors``; by default crops are rounded and sums stop at 255 (``drawing.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.scenes.backgrounds import BACKGROUND_DRAWS
from saccade.data.scenes.drawing import Drawing, check_drawing, drawn_as_authors, painted
from saccade.data.scenes.fused import try_kernel
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import hash_state, hash_words, rounded_normal, uniform_below, uniform_pair_below
from saccade.data.scenes.palette import COLOURS, rgb
from saccade.data.scenes.placement import FRACTION_BITS
from saccade.data.scenes.render import divided_by_255
from saccade.data.scenes.resize import GLYPH, resized

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

    def __post_init__(self) -> None:
        check_drawing(self.drawing)

    @property
    def name(self) -> str:
        """Their number, as in ``distractors-17``."""
        return f"distractors-{self.count}"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Black pictures with crops of ``glyphs`` added."""
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
        corner = self._corners(uniform_below(for_glyph, len(glyphs)), for_offset)  # (B, K)
        as_authors = drawn_as_authors(self.drawing, indices)  # (B,) or None

        def by_one_kernel() -> Tensor:
            from saccade.data.scenes.kernels.painting import strew

            images = torch.zeros(len(indices), 3, size, size, dtype=torch.uint8, device=indices.device)
            strew(images, glyphs, corner, side, x, y, colour, as_authors, crop=self.crop, largest=largest)
            return images

        images = try_kernel(by_one_kernel, indices.device, size)
        if images is None:
            ink = resized(self._crops(glyphs, corner), side.flatten(), largest).int()  # (B·K, p, p)
            images = _added(ink.view(*side.shape, largest, largest), colour.int(), x, y, size, as_authors)
        return images

    def _corners(self, glyph: Tensor, for_offset: Tensor) -> Tensor:
        """Where the crop of each glyph (B, K) begins in the flattened glyphs.

        Its offset is uniform in 0 … 28 − crop − 1, as the authors draw it.
        """
        left, top = uniform_pair_below(for_offset, GLYPH - self.crop)
        return (glyph * GLYPH + top) * GLYPH + left  # (B, K)

    def _crops(self, glyphs: GlyphSet, corner: Tensor) -> Tensor:
        """The crops that begin at ``corner`` (B, K): (B·K, crop, crop) uint8."""
        along = torch.arange(self.crop, device=corner.device)
        inside = along[:, None] * GLYPH + along  # (crop, crop)
        return glyphs.images.flatten()[corner.flatten()[:, None, None] + inside]


def _added(ink: Tensor, colour: Tensor, x: Tensor, y: Tensor, size: int, as_authors: Tensor | None) -> Tensor:
    """The sum of coloured crops with corners ``x``, ``y`` (B, K): (B, 3, size, size) uint8.

    Whole numbers add up to the same in any order, so a device may take the crops as they come.

    Args:
        ink: (B, K, p, p) int32 0..255, empty beyond each crop's own side.
        colour: (B, K, 3) int32 0..255.
        x: left edges.
        y: top edges.
        size: side of the pictures.
        as_authors: (B,) bool, the scenes whose sums wrap around; None: none. All others stop at 255.
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
