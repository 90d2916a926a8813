"""Glyphs at another size, inside a kernel.

They are resized by the coefficients of ``resize.py``: products of 8-bit numbers, whose sums have at most 16 bits, so
that float16 operands with float32 sums are exact in any order.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from saccade.data.scenes.resize import GLYPH, coefficients


def size_table(largest: int, device: torch.device) -> Tensor:
    """The coefficients of every side up to ``largest``, as float16: whole 256ths are exact there too."""
    return coefficients(GLYPH, largest, device, torch.float16)


@triton.jit
def glyph_at_size(image, table, side, row, column, width: tl.constexpr, pad: tl.constexpr):
    """A square cut from glyphs at another size, before the last rounding.

    Args:
        image: where the cut begins.
        table: coefficients of that size.
        side: the size.
        row: rows of the result that are wanted, zero where they lie outside.
        column: columns of it.
        width: side of the cut.
        pad: the same as a power of two.
    """
    source = tl.arange(0, pad)
    there = source < width
    cut = tl.load(image + source[:, None] * 28 + source[None, :], mask=there[:, None] & there[None, :], other=0)
    of_column = tl.load(
        table + column[None, :] * width + source[:, None],
        mask=((column >= 0) & (column < side))[None, :] & there[:, None],
        other=0.0,
    )  # (pad, columns)
    across = tl.floor(tl.dot(cut.to(tl.float16), of_column) + 0.5)  # (pad, columns)
    of_row = tl.load(
        table + row[:, None] * width + source[None, :],
        mask=((row >= 0) & (row < side))[:, None] & there[None, :],
        other=0.0,
    )  # (rows, pad)
    return tl.dot(of_row, across.to(tl.float16))  # (rows, columns)
