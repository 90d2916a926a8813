"""Layouts to pictures and masks, touching only the pixels that glyphs cover.

Glyphs are resized in groups, and what is non-zero of them (a sixth of a picture) is kept as a list of (object, pixel,
ink). A picture is the background with colour · ink/255 + background · (1 − ink/255), rounded, at the listed pixels; a
mask is True there. Scenes drawn as the authors draw them have ⌊colour · ink/255⌋ in place of the colour
(``drawing.py``). All of it is whole numbers, so pictures too are the same on every device. NumPy does the work on the
host (``host.py``) and torch elsewhere; on a GPU a kernel paints digits without a list
(``kernels/painting.py``), where it can be used and digits do not lie over each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.data.scenes.drawing import drawn_as_authors, painted, resized
from saccade.data.scenes.host import Pixels, inked_on_host, paint_on_host
from saccade.data.scenes.kernels import try_kernel

if TYPE_CHECKING:
    from saccade.data.scenes.layout import GlyphLayout, SceneLayout


# Four in five digits of a crowded scene are smaller than 32 px; finer steps cost more calls than they save.
_PADDINGS = (21, 32, 48)


class InkedPixels(NamedTuple):
    """M pixels with ink on them, in no particular order; sampled scenes list each pixel at most once."""

    obj: Tensor  # (M,) scene · N + slot
    position: Tensor  # (M,) scene · H · W + row · W + column
    ink: Tensor  # (M,) int32 1..255


def inked_pixels(layout: GlyphLayout) -> InkedPixels:
    """Every visible pixel of every object of a layout."""
    pixels = _listed_on_host(layout) if layout.device.type == "cpu" else _listed_on_device(layout)
    if not layout.may_overlap:
        return pixels
    # Where objects share a pixel, the one in the later slot is in front.
    owner = torch.full((len(layout) * layout.spec.size**2,), -1, dtype=torch.int64, device=layout.device)
    owner.scatter_reduce_(0, pixels.position, pixels.obj, "amax")
    seen = owner[pixels.position] == pixels.obj
    return InkedPixels(pixels.obj[seen], pixels.position[seen], pixels.ink[seen])


def _on_host(layout: GlyphLayout, planes: int = 1) -> Iterator[Pixels]:
    columns = (layout.glyphs.images, layout.glyph, layout.side, layout.x, layout.y, layout.present)
    return inked_on_host(*(column.numpy() for column in columns), size=layout.spec.size, planes=planes)


def _listed_on_host(layout: GlyphLayout) -> InkedPixels:
    """Glyphs of one size together: that is least work."""
    parts = list(_on_host(layout))
    obj, position, ink = (
        np.concatenate([part[column].astype(dtype, copy=False) for part in parts] or [np.zeros(0, dtype)])
        for column, dtype in enumerate((np.int64, np.int64, np.int32))
    )
    return InkedPixels(torch.from_numpy(obj), torch.from_numpy(position), torch.from_numpy(ink))


def _listed_on_device(layout: GlyphLayout) -> InkedPixels:
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
        paint_on_host(images, _on_host(layout, planes=3), layout.rgb, as_authors)
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


def divided_by_255(product: Tensor) -> Tensor:
    """Exactly round(product / 255) for 0 ≤ product ≤ 255², without a division."""
    return (product + 128).mul_(257) >> 16


@lru_cache(maxsize=32)
def _offsets(pad: int, size: int, device: torch.device) -> Tensor:
    """(pad · pad,): how far the pixels of a patch lie from its corner, in a flattened picture."""
    along = torch.arange(pad, device=device)
    return (along[:, None] * size + along).flatten()
