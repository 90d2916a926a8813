"""Resizing of ``resize.py`` on the host: glyphs of one size together, as two products that they share.

Products of NumPy start sooner than torch's, which matters for a few glyphs. But NumPy's library starts threads of its
own for larger ones, so those go to torch, which keeps to the number of threads it was given. All sums are exact, so it
makes no difference to the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from saccade.data.scenes.resize import GLYPH, coefficients_of

Array = NDArray[Any]

_ONE_THREAD = 1 << 18  # multiplications up to which OpenBLAS starts no thread
_HALF = np.float32(0.5)


def mixed_alike(glyphs: Array, size: int) -> Array:
    """Glyphs (n, 28, 28) uint8 at one size, with the second pass not yet rounded: (size, n, size) float32.

    Rows come first: so each pass is one product for all glyphs. Call it where autocast is off.
    """
    count = len(glyphs)
    rows, columns = _weights(size)
    across = _product(glyphs.astype(np.float32).reshape(-1, GLYPH), columns)  # (n · 28, size)
    rounded = np.empty((GLYPH, count, size), np.float32)
    np.add(across.reshape(count, GLYPH, size).transpose(1, 0, 2), _HALF, out=rounded)
    np.floor(rounded, out=rounded)
    return _product(rows, rounded.reshape(GLYPH, -1)).reshape(size, count, size)


def alike(sizes: Array) -> Iterator[tuple[int, int, int]]:
    """Runs of the same number in ``sizes`` (n,), sorted: (number, where it begins, where it ends)."""
    counts = np.bincount(sizes) if len(sizes) else sizes
    ends = counts.cumsum()
    for size in np.flatnonzero(counts).tolist():
        yield size, int(ends[size] - counts[size]), int(ends[size])


def _product(left: Array, right: Array) -> Array:
    if left.shape[0] * left.shape[1] * right.shape[1] <= _ONE_THREAD:
        return left @ right
    return torch.mm(torch.from_numpy(left), torch.from_numpy(right)).numpy()


@lru_cache(maxsize=512)
def _weights(size: int) -> tuple[Array, Array]:
    """The coefficients of one size as (size, 28) and as (28, size)."""
    rows = coefficients_of(GLYPH, size).numpy()
    return rows, np.ascontiguousarray(rows.T)
