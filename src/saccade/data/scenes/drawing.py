"""How glyphs are drawn: resized in exact integers, in the five colours, in the order of their labels.

How ink becomes colour: there are two drawings of the same scene.

============== =====================================================================================================
blend           saccade's own. A digit of ink g (0 … 255) lies on its background with opacity g/255, so on black it is
                colour · g/255. Sums of distractors stop at 255
authors         that of the generator that Seo et al. released. A digit is painted in colour · g/255, cut to whole
                numbers, and pasted with opacity g/255. So ink counts twice: on black it is colour · (g/255)².
                Distractors are painted in the same way and added as bytes: sums wrap around at 256
both            scenes with an even number as ``blend``, the others as ``authors``
mostly-authors  every fourth scene as ``blend``, the others as ``authors``: for models that find those harder
============== =====================================================================================================

Digits, places, colours, masks and boxes do not depend on the drawing.

Resizing is antialiased and bilinear, as two matrix products. Which pixels of a resized glyph are non-zero decides where
the next glyph may go, so every device must agree on them to the last bit. The triangle filter (Pillow's ``BILINEAR``:
support grows when the picture shrinks) is therefore a table of whole coefficients that sum to exactly 256, kept as
256ths, and each pass ends in ⌊sum + ½⌋. Coefficients and pixels have at most 8 significant bits and sums at most 24, so
the float products are exact in float32, in TF32 and even where the backend computes float32 products in bfloat16. The
result differs from Pillow's, which keeps 22 bits per coefficient, by at most 2/255.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

COLOURS = ("green", "yellow", "white", "red", "blue")

# From the authors' released generator; they kept the names in an unordered set, so the label order is ours.
_RGB = {
    "green": (16, 166, 81),
    "yellow": (255, 241, 78),
    "white": (224, 224, 224),
    "red": (146, 16, 16),
    "blue": (16, 98, 192),
}


def rgb(colours: Tensor, noise: Tensor) -> Tensor:
    """Colours (…) and their noise (…), one number on all three channels, as (…, 3) int64 in 0..255."""
    return (_table(colours.device)[colours] + noise[..., None]).clamp_(0, 255)


@lru_cache
def _table(device: torch.device) -> Tensor:
    """(5, 3): copied to a device once, as every copy makes the host wait."""
    return torch.tensor([_RGB[name] for name in COLOURS], device=device)


Drawing = Literal["blend", "authors", "both", "mostly-authors"]
# Drawings that have both: the first of every N scenes is ``blend``, the others are ``authors``.
EVERY = {"both": 2, "mostly-authors": 4}


def drawn_as_authors(drawing: Drawing, index: Tensor) -> Tensor | None:
    """(B,) bool: which of the scenes ``index`` (B,) are drawn as the authors draw; None: none of them."""
    if drawing == "blend":
        return None
    return index % EVERY[drawing] != 0 if drawing in EVERY else (index >= 0)


def drawing_of(drawing: Drawing, index: int) -> str:
    """``blend`` or ``authors``: how scene ``index`` of a set is drawn."""
    as_authors = drawn_as_authors(drawing, torch.tensor([index]))
    return "blend" if as_authors is None or not bool(as_authors) else "authors"


def painted(colour: Tensor, ink: Tensor) -> Tensor:
    """⌊colour · ink / 255⌋ of whole numbers 0 … 255, without a division."""
    product = colour * ink
    return (product + 1 + (product >> 8)) >> 8


GLYPH = 28  # Side of a glyph as it is stored
FRACTION_BITS = 16  # Extents (the side of a glyph before truncation) are whole numbers of 2⁻¹⁶ px

_UNIT = 256


def resized(glyphs: Tensor, sizes: Tensor, pad: int) -> Tensor:
    """Each glyph at its own size, in the top left corner of a ``pad`` × ``pad`` square of zeros.

    Args:
        glyphs: (n, g, g) uint8; whole digits have g = 28.
        sizes: (n,) int64, each at most ``pad``.
        pad: side of the square.

    Returns:
        (n, pad, pad) float32 holding whole numbers 0..255.
    """
    table = coefficients(glyphs.shape[-1], pad, glyphs.device)  # (pad + 1, pad, g)
    with torch.autocast(glyphs.device.type, enabled=False):
        rows = table[sizes]  # (n, pad, g)
        across = (glyphs.float() @ rows.mT).add_(0.5).floor_()  # (n, g, pad)
        return (rows @ across).add_(0.5).floor_()  # (n, pad, pad)


@lru_cache(maxsize=32)
def coefficients(source: int, largest: int, device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    """(largest + 1, largest, source): row i of entry s says how pixel i at size s is mixed from ``source`` pixels.

    Whole numbers of 256ths, so that sums need no division; float16 holds them exactly too.
    """
    table = torch.zeros(largest + 1, largest, source)
    for size in range(1, largest + 1):
        table[size, :size] = coefficients_of(source, size)
    return table.to(device, dtype)


def coefficients_of(source: int, size: int) -> Tensor:
    """(size, source): how the pixels at one size are mixed, see :func:`coefficients`."""
    table = torch.zeros(size, source)
    for row in range(size):
        first, weights = _triangle_weights(source, size, row)
        table[row, first : first + len(weights)] = torch.tensor(weights, dtype=torch.float32)
    return table.div_(_UNIT)


def _triangle_weights(source: int, size: int, row: int) -> tuple[int, list[int]]:
    """First of ``source`` pixels and whole weights, summing to 256, of output pixel ``row`` at ``size``."""
    step = source / size
    reach = max(step, 1.0)
    centre = (row + 0.5) * step
    first, last = max(0, int(centre - reach + 0.5)), min(source, int(centre + reach + 0.5))
    exact = [max(0.0, 1.0 - abs(pixel + 0.5 - centre) / reach) for pixel in range(first, last)]
    total = sum(exact)
    exact = [weight * _UNIT / total for weight in exact]
    whole = [int(weight) for weight in exact]
    # Largest remainder: the rounding that keeps the sum exact, so that flat areas stay flat.
    by_remainder = sorted(range(len(exact)), key=lambda i: (round(whole[i] - exact[i], 9), i))
    for i in by_remainder[: _UNIT - sum(whole)]:
        whole[i] += 1
    return first, whole
