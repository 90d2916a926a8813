"""Antialiased bilinear resizing of small square glyphs in exact integers, as two matrix products.

Which pixels of a resized glyph are non-zero decides where the next glyph may go, so every device must agree on them
to the last bit. The triangle filter (Pillow's ``BILINEAR``: support grows when the picture shrinks) is therefore a
table of whole coefficients that sum to exactly 256, kept as 256ths, and each pass ends in ⌊sum + ½⌋. Coefficients and
pixels have at most 8 significant bits and sums at most 24, so the float products are exact in float32, in TF32 and even
where the backend computes float32 products in bfloat16. The result differs from Pillow's, which keeps 22 bits per
coefficient, by at most 2/255.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

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
