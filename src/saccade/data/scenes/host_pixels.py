"""The pixels with ink on them, and pictures made of them, on the host: the work of ``render.py`` in NumPy.

Glyphs of one size are resized together, and their pixels painted while they are still in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from torch import Tensor

from saccade.data.scenes.host_resize import HALF, Array, alike, mixed_alike

_TOGETHER = 1 << 16  # pixels of a resized glyph at a time

Pixels = tuple[Array, Array, Array]
"""Number of the object, position in the flattened batch of pictures, and ink 1 .. 255: (m,) int64, int64, uint16."""


def inked_on_host(
    images: Array, glyph: Array, side: Array, x: Array, y: Array, present: Array, *, size: int, planes: int = 1
) -> Iterator[Pixels]:
    """Every pixel with ink on it of the objects (B, N), some at a time and in no particular order.

    Args:
        images: (n, 28, 28) uint8 glyphs.
        glyph: ids in ``images``.
        side: sides of the boxes.
        x: left edges.
        y: top edges.
        present: bool.
        size: side of the pictures.
        planes: how many a picture has; positions are those in the first.
    """
    objects = np.flatnonzero(present)  # (K,) scene · N + slot
    objects = objects[side.reshape(-1)[objects].argsort(kind="stable")]
    sides, glyphs, left, top = (column.reshape(-1)[objects] for column in (side, glyph, x, y))
    corner = (objects // present.shape[1]) * (planes * size * size) + top * size + left
    bits = present.size.bit_length()
    both = (corner << bits) | objects  # position and number of the object travel as one number
    for length, start, stop in alike(sides):
        step = max(1, _TOGETHER // length**2)
        for first in range(start, stop, step):
            members = slice(first, min(first + step, stop))
            patches = mixed_alike(images.take(glyphs[members], axis=0), length)  # (k, length, length)
            patches += HALF
            inks = patches.reshape(-1).astype(np.uint8)
            at = np.flatnonzero(inks != 0)  # (m,)
            found = (both[members, None] + (_offsets(length, size) << bits)).reshape(-1).take(at)
            yield found & ((1 << bits) - 1), found >> bits, inks.take(at).astype(np.uint16)


def paint_on_host(pictures: Tensor, pixels: Iterator[Pixels], rgb: Tensor, as_authors: Tensor | None = None) -> None:
    """Paint objects that share no pixel onto ``pictures`` (B, 3, H, W) uint8, in place.

    Args:
        pictures: what lies behind the objects.
        pixels: where they have ink, positions in the first of three planes.
        rgb: (B, N, 3) colours 0..255.
        as_authors: (B,) bool, the scenes that are drawn as the authors draw them, see ``drawing.py``; None: none.
    """
    flat, area = pictures.view(-1).numpy(), pictures.shape[-1] ** 2
    colours = np.ascontiguousarray(rgb.numpy().reshape(-1, 3).T.astype(np.uint16))  # (3, B·N)
    pasted = None if as_authors is None else as_authors.numpy().repeat(rgb.shape[1])  # (B·N,) bool
    for obj, at, ink in pixels:
        transparent = np.uint16(255) - ink
        for colour in colours:
            # round(lit / 255) without a division, and within 16 bits
            lit = flat.take(at) * transparent
            shade = colour.take(obj)
            if pasted is not None:
                shade = np.where(pasted.take(obj), _painted(shade, ink), shade)
            lit += ink * shade
            lit += np.uint16(128)
            lit += lit >> np.uint16(8)
            lit >>= np.uint16(8)
            flat[at] = lit.astype(np.uint8)
            at += area


def _painted(colour: Array, ink: Array) -> Array:
    """⌊colour · ink / 255⌋ without a division, and within 16 bits."""
    product: Array = colour * ink
    return (product + np.uint16(1) + (product >> np.uint16(8))) >> np.uint16(8)


@lru_cache(maxsize=512)
def _offsets(length: int, size: int) -> Array:
    """(length²,): how far the pixels of a patch lie from its corner in a flattened picture."""
    along = np.arange(length)
    return (along[:, None] * size + along).reshape(-1)
