"""Resizing of ``resize.py`` on the host, in NumPy: glyphs of one size together, by products with the same matrix.

There is a product for each glyph, each too small for NumPy's library to start threads. All sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saccade.data.scenes.resize import GLYPH, coefficients_of

Array = NDArray[Any]

HALF = np.float32(0.5)
"""What is added before a number is cut to a whole one; from here on a pixel has ink."""


def mixed_alike(glyphs: Array, size: int) -> Array:
    """Glyphs (n, 28, 28) uint8 at one size, with the second pass not yet rounded: (n, size, size) float32."""
    rows, columns = _weights(size)
    across = np.matmul(glyphs.astype(np.float32), columns)  # (n, 28, size)
    across += HALF
    np.floor(across, out=across)
    mixed: Array = np.matmul(rows, across)  # (n, size, size)
    return mixed


def alike(sizes: Array) -> Iterator[tuple[int, int, int]]:
    """Runs of the same number in ``sizes`` (n,), sorted: (number, where it begins, where it ends)."""
    counts = np.bincount(sizes)
    ends = counts.cumsum()
    for size in np.flatnonzero(counts).tolist():
        yield size, int(ends[size] - counts[size]), int(ends[size])


@lru_cache(maxsize=512)
def _weights(size: int) -> tuple[Array, Array]:
    """The coefficients of one size as (size, 28) and as (28, size)."""
    rows = coefficients_of(GLYPH, size).numpy()
    return rows, np.ascontiguousarray(rows.T)
