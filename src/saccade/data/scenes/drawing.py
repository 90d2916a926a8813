"""How scenes are drawn: glyphs resized in exact integers, layouts turned into lists of inked pixels and pictures.

There are two drawings of the same scene:

============== =====================================================================================================
blend           saccade's own. A digit of ink g (0 … 255) lies on its background with opacity g/255, so on black it is
                colour · g/255. Sums of distractors stop at 255
authors         that of the generator that Seo et al. released. A digit is painted in colour · g/255, cut to whole
                numbers, and pasted with opacity g/255: on black it is colour · (g/255)². Distractors are painted in
                the same way and added as bytes: sums wrap around at 256
both            scenes with an even number as ``blend``, the others as ``authors``
mostly-authors  every fourth scene as ``blend``, the others as ``authors``: for models that find those harder
============== =====================================================================================================

Digits, places, colours, masks and boxes do not depend on the drawing.

Which pixels of a resized glyph are non-zero decides where the next one may go, so every device must agree on them to
the last bit. The triangle filter (Pillow's ``BILINEAR``: support grows when the picture shrinks) is therefore a table
of whole coefficients that sum to exactly 256, and each of the two passes ends in ⌊sum + ½⌋. Coefficients and pixels
have at most 8 significant bits and sums at most 24, so the float products are exact in float32, in TF32 and even in
bfloat16 passes. The result differs from Pillow's by at most 2/255.

Only the pixels that glyphs cover are touched: by NumPy on the host, by torch elsewhere, and on a GPU by
``kernels/painting.py``, unless digits may lie over each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.data.scenes.kernels import try_kernel

if TYPE_CHECKING:
    from saccade.data.scenes.layout import GlyphLayout, SceneLayout

Array = NDArray[Any]
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
    """(B,) bool: which of the scenes ``index`` (B,) are drawn as the authors draw; None: none."""
    if drawing == "blend":
        return None
    return index % EVERY[drawing] != 0 if drawing in EVERY else (index >= 0)


def painted(colour: Any, ink: Any) -> Any:
    """⌊colour · ink / 255⌋ of whole numbers 0 … 255, without a division and within 16 bits."""
    product = colour * ink
    return (product + 1 + (product >> 8)) >> 8


GLYPH = 28  # Side of a glyph as it is stored
FRACTION_BITS = 16  # Extents (the side of a glyph before truncation) are whole numbers of 2⁻¹⁶ px
HALF = np.float32(0.5)  # What is added before a number is cut to a whole one; from here on a pixel has ink
_UNIT = 256


def resized(glyphs: Tensor, sizes: Tensor, pad: int) -> Tensor:
    """Each of the glyphs (n, g, g) uint8 at its own size (n,), in the top left corner of a square of zeros.

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

    Whole numbers of 256ths, so that sums need no division.
    """
    table = torch.zeros(largest + 1, largest, source)
    for size in range(1, largest + 1):
        table[size, :size] = _coefficients_of(source, size)
    return table.to(device, dtype)


def _coefficients_of(source: int, size: int) -> Tensor:
    table = torch.zeros(size, source)
    step = source / size
    reach = max(step, 1.0)
    for row in range(size):
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
        table[row, first:last] = torch.tensor(whole, dtype=torch.float32)
    return table.div_(_UNIT)


def resized_alike(glyphs: Array, size: int) -> Array:
    """Glyphs (n, 28, 28) uint8 at one size, with the second pass not yet rounded: (n, size, size) float32."""
    rows, columns = _both_ways(size)
    across = np.matmul(glyphs.astype(np.float32), columns)  # (n, 28, size)
    across += HALF
    np.floor(across, out=across)
    mixed: Array = np.matmul(rows, across)  # (n, size, size)
    return mixed


@lru_cache(maxsize=512)
def _both_ways(size: int) -> tuple[Array, Array]:
    rows = _coefficients_of(GLYPH, size).numpy()
    return rows, np.ascontiguousarray(rows.T)


def runs(sizes: Array) -> Iterator[tuple[int, int, int]]:
    """Runs of the same number in ``sizes`` (n,), sorted: (number, where it begins, where it ends)."""
    counts = np.bincount(sizes)
    ends = counts.cumsum()
    for size in np.flatnonzero(counts).tolist():
        yield size, int(ends[size] - counts[size]), int(ends[size])


class InkedPixels(NamedTuple):
    """M pixels with ink on them; sampled scenes list each pixel at most once."""

    obj: Tensor  # (M,) scene · N + slot
    position: Tensor  # (M,) scene · H · W + row · W + column
    ink: Tensor  # (M,) int32 1..255


def inked_pixels(layout: GlyphLayout) -> InkedPixels:
    """Every visible pixel of every object of a layout."""
    if layout.device.type == "cpu":
        parts = list(_inked_on_host(layout)) or [(np.zeros(0, np.int64),) * 3]
        obj, position, ink = (np.concatenate(column) for column in zip(*parts))
        pixels = InkedPixels(*map(torch.from_numpy, (obj, position, ink.astype(np.int32))))
    else:
        pixels = _inked_on_device(layout)
    if not layout.may_overlap:
        return pixels
    # Where objects share a pixel, the one in the later slot is in front.
    owner = torch.full((len(layout) * layout.spec.size**2,), -1, dtype=torch.int64, device=layout.device)
    owner.scatter_reduce_(0, pixels.position, pixels.obj, "amax")
    visible = owner[pixels.position] == pixels.obj
    return InkedPixels(*(column[visible] for column in pixels))


_TOGETHER = 1 << 16  # pixels of a resized glyph at a time


def _inked_on_host(layout: GlyphLayout, planes: int = 1) -> Iterator[tuple[Array, Array, Array]]:
    """The columns of :class:`InkedPixels`, some at a time: glyphs of one size together, which is least work.

    Positions are those in the first of the ``planes`` of a picture, and ink is uint16.
    """
    images, size = layout.glyphs.images.numpy(), layout.spec.size
    present, side = layout.present.numpy(), layout.side.numpy()
    objects = np.flatnonzero(present)  # (K,) scene · N + slot
    objects = objects[side.reshape(-1)[objects].argsort(kind="stable")]
    columns = (side, *(column.numpy() for column in (layout.glyph, layout.x, layout.y)))
    sides, glyphs, left, top = (column.reshape(-1)[objects] for column in columns)
    corner = (objects // present.shape[1]) * (planes * size * size) + top * size + left
    bits = present.size.bit_length()
    both = (corner << bits) | objects  # position and number of the object travel as one number
    for length, start, stop in runs(sides):
        step = max(1, _TOGETHER // length**2)
        inside = _offsets(length, size, layout.device).numpy() << bits
        for first in range(start, stop, step):
            members = slice(first, min(first + step, stop))
            patches = resized_alike(images.take(glyphs[members], axis=0), length)  # (k, length, length)
            patches += HALF
            inks = patches.reshape(-1).astype(np.uint8)
            at = np.flatnonzero(inks != 0)  # (m,)
            pixels = (both[members, None] + inside).reshape(-1).take(at)
            yield pixels & ((1 << bits) - 1), pixels >> bits, inks.take(at).astype(np.uint16)


# Four in five digits of a crowded scene are smaller than 32 px; finer steps cost more calls than they save.
_PADDINGS = (21, 32, 48)


def _inked_on_device(layout: GlyphLayout) -> InkedPixels:
    """Glyphs of similar size together: those are few operations."""
    slots, size = layout.present.shape[1], layout.spec.size
    objects = layout.present.flatten().nonzero().squeeze(1)  # (K,)
    side = layout.side.flatten()[objects]
    glyphs = layout.glyphs.images[layout.glyph.flatten()[objects]]  # (K, 28, 28)
    # Position of each box's corner in the flattened batch of pictures.
    corner = ((objects // slots) * size + layout.y.flatten()[objects]) * size + layout.x.flatten()[objects]
    empty = objects.new_zeros(0)
    parts = [InkedPixels(empty, empty, empty.int())]
    largest = layout.spec.largest
    for smaller, pad in pairwise((0, *(edge for edge in _PADDINGS if edge < largest), largest)):
        group = ((side > smaller) & (side <= pad)).nonzero().squeeze(1)
        if not len(group):
            continue
        patches = resized(glyphs[group], side[group], pad).view(-1)  # (k · pad · pad,)
        at = patches.nonzero().squeeze(1)  # (m,)
        member = group[at // (pad * pad)]
        inside = _offsets(pad, size, at.device)[at % (pad * pad)]
        parts.append(InkedPixels(objects[member], corner[member] + inside, patches[at].int()))
    return InkedPixels(*map(torch.cat, zip(*parts)))


@lru_cache(maxsize=512)
def _offsets(length: int, size: int, device: torch.device) -> Tensor:
    along = torch.arange(length, device=device)
    return (along[:, None] * size + along).flatten()


def render(layout: SceneLayout) -> Tensor:
    """The pictures of a layout: (B, 3, H, W) uint8."""
    size = layout.spec.size
    images = layout.spec.background(layout.glyphs, layout.seed, layout.index, size)
    as_authors = drawn_as_authors(layout.spec.drawing, layout.index)  # (B,) or None

    def by_one_kernel() -> Tensor:
        from saccade.data.scenes.kernels.painting import paint

        columns = (layout.glyph, layout.side, layout.x, layout.y, layout.present, layout.rgb)
        paint(images, layout.glyphs, *columns, as_authors, largest=layout.spec.largest)
        return images

    if not layout.may_overlap and try_kernel(by_one_kernel, layout.device, size) is not None:
        return images
    if not layout.may_overlap and layout.device.type == "cpu":
        _paint_on_host(images, layout, as_authors)
        return images
    pixels = inked_pixels(layout)
    colours = layout.rgb.flatten(0, 1).T.int()  # (3, B·N)
    scene = pixels.obj // layout.present.shape[1]
    flat, transparent = images.view(-1), 255 - pixels.ink
    at = pixels.position + scene * (2 * size * size)  # (M,) in the first plane: each scene before has two planes more
    for channel in range(3):
        colour = colours[channel][pixels.obj]  # (M,)
        if as_authors is not None:
            colour = torch.where(as_authors[scene], painted(colour, pixels.ink), colour)
        lit = (transparent * flat[at]).addcmul_(pixels.ink, colour)
        flat[at] = divided_by_255(lit).byte()
        at += size * size
    return images


def _paint_on_host(images: Tensor, layout: SceneLayout, as_authors: Tensor | None) -> None:
    """Paint objects that share no pixel onto ``images`` (B, 3, H, W) uint8, in place."""
    flat, area = images.view(-1).numpy(), images.shape[-1] ** 2
    colours = np.ascontiguousarray(layout.rgb.numpy().reshape(-1, 3).T.astype(np.uint16))  # (3, B·N)
    pasted = None if as_authors is None else as_authors.numpy().repeat(layout.present.shape[1])  # (B·N,) bool
    for obj, at, ink in _inked_on_host(layout, planes=3):
        transparent = np.uint16(255) - ink
        for colour in colours:
            # round(lit / 255) without a division, and within 16 bits
            lit = flat.take(at) * transparent
            shade = colour.take(obj)
            if pasted is not None:
                shade = np.where(pasted.take(obj), painted(shade, ink), shade)
            lit += ink * shade
            lit += np.uint16(128)
            lit += lit >> np.uint16(8)
            lit >>= np.uint16(8)
            flat[at] = lit.astype(np.uint8)
            at += area


def divided_by_255(product: Tensor) -> Tensor:
    """Exactly round(product / 255) for 0 ≤ product ≤ 255², without a division."""
    return (product + 128).mul_(257) >> 16
