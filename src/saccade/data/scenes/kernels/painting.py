"""Pixels of scenes, in whole numbers.

One program paints one digit, another adds the crops of one scene, a third cuts one plane of a photograph.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from saccade.data.scenes.drawing import coefficients
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.kernels.placing import glyph_at_size, size_table

_WARPS = 4
_TILE = 32  # a digit is painted in squares of this side; two in three digits are smaller


def paint(
    pictures: Tensor,  # (B, 3, H, W) uint8
    glyphs: GlyphSet,
    glyph: Tensor,  # (B, N) ids in ``glyphs``
    side: Tensor,  # (B, N) of the boxes
    x: Tensor,  # (B, N) left edges
    y: Tensor,  # (B, N) top edges
    present: Tensor,  # (B, N) bool
    rgb: Tensor,  # (B, N, 3) int64
    as_authors: Tensor | None,  # (B,) bool, see ``drawing.py``; None: none
    *,
    largest: int,
) -> None:
    """Paint digits that share no pixel, with sides of at most ``largest``, onto ``pictures`` in place."""
    if present.numel():
        _paint[(present.numel(),)](
            pictures,
            *(
                column.contiguous()
                for column in (glyph, side, x, y, present, rgb, _flags(as_authors, len(present), present))
            ),
            glyphs.images,
            size_table(largest, present.device),
            size=pictures.shape[-1],
            slots=present.shape[1],
            largest=largest,
            tile=_TILE,
            num_warps=_WARPS,
        )


def strew(
    pictures: Tensor,  # (B, 3, H, W) uint8
    glyphs: GlyphSet,
    corner: Tensor,  # (B, K) where crops begin in the flattened glyphs
    side: Tensor,  # (B, K) of the scaled crops
    x: Tensor,  # (B, K) left edges
    y: Tensor,  # (B, K) top edges
    rgb: Tensor,  # (B, K, 3) int64
    as_authors: Tensor | None,  # (B,) bool, the scenes whose sums wrap around; the others stop at 255
    *,
    crop: int,
    largest: int,
) -> None:
    """Add coloured crops of glyphs, of side ``crop`` and scaled to at most ``largest``, to ``pictures`` in place."""
    if side.numel():
        _strew[(len(side),)](
            pictures,
            *(column.contiguous() for column in (corner, side, x, y, rgb, _flags(as_authors, len(side), side))),
            glyphs.images,
            coefficients(crop, largest, side.device, torch.float16),
            size=pictures.shape[-1],
            count=side.shape[1],
            width=crop,
            padded=max(16, triton.next_power_of_2(crop)),
            largest=largest,
            pad=max(16, triton.next_power_of_2(largest)),
            num_warps=1,
        )


def cut(pixels: Tensor, corner: Tensor, width: Tensor, area: Tensor, mirrored: Tensor, size: int) -> Tensor:
    """Squares (B, 3, size, size) of photographs, whose planes lie one after the other in ``pixels`` (n,) uint8.

    (B,) each: where a square begins, width and area of its photograph, and whether left and right are exchanged.
    """
    pictures = torch.empty(len(corner), 3, size, size, dtype=torch.uint8, device=corner.device)
    if len(corner):
        _cut[(3 * len(corner),)](
            pictures,
            *(column.contiguous() for column in (corner, width, area, mirrored)),
            pixels,
            size=size,
            columns=triton.next_power_of_2(size),
            num_warps=_WARPS,
        )
    return pictures


def _flags(as_authors: Tensor | None, batch: int, like: Tensor) -> Tensor:
    return torch.zeros(batch, dtype=torch.bool, device=like.device) if as_authors is None else as_authors


@triton.jit
def _cut_by_255(product):
    """⌊product / 255⌋ for 0 ≤ product ≤ 255²."""
    return (product * 257 + 257) >> 16


@triton.jit(
    do_not_specialize_on_alignment=[
        "pictures",
        "glyphs",
        "sides",
        "lefts",
        "tops",
        "presents",
        "colours",
        "pasted",
        "images",
        "table",
    ]
)
def _paint(
    pictures,
    glyphs,
    sides,
    lefts,
    tops,
    presents,
    colours,
    pasted,
    images,
    table,
    size: tl.constexpr,
    slots: tl.constexpr,
    largest: tl.constexpr,
    tile: tl.constexpr,
):
    digit = tl.program_id(0).to(tl.int64)
    if tl.load(presents + digit) != 0:
        side = tl.load(sides + digit).to(tl.int32)
        image = images + tl.load(glyphs + digit) * 784
        of_side = table + side * (largest * 28)
        twice = tl.load(pasted + digit // slots) != 0
        corner = pictures + (digit // slots) * (3 * size * size) + tl.load(tops + digit) * size + tl.load(lefts + digit)
        top = tl.full((), 0, tl.int32)
        while top < side:
            left = tl.full((), 0, tl.int32)
            while left < side:
                row = top + tl.arange(0, tile)
                column = left + tl.arange(0, tile)
                ink = tl.floor(glyph_at_size(image, of_side, side, row, column, 28, 32) + 0.5).to(
                    tl.int32
                )  # (tile, tile)
                at = corner + row[:, None] * size + column[None, :]
                for channel in tl.static_range(3):
                    colour = tl.load(colours + digit * 3 + channel).to(tl.int32)
                    behind = tl.load(at + channel * size * size, mask=ink > 0, other=0).to(tl.int32)
                    shade = tl.where(twice, _cut_by_255(ink * colour), colour)
                    lit = (255 - ink) * behind + ink * shade
                    tl.store(at + channel * size * size, (((lit + 128) * 257) >> 16).to(tl.uint8), mask=ink > 0)
                left += tile
            top += tile


@triton.jit(
    do_not_specialize_on_alignment=[
        "pictures",
        "corners",
        "sides",
        "lefts",
        "tops",
        "colours",
        "wrapped",
        "images",
        "table",
    ]
)
def _strew(
    pictures,
    corners,
    sides,
    lefts,
    tops,
    colours,
    wrapped,
    images,
    table,
    size: tl.constexpr,
    count: tl.constexpr,
    width: tl.constexpr,
    padded: tl.constexpr,
    largest: tl.constexpr,
    pad: tl.constexpr,
):
    scene = tl.program_id(0).to(tl.int64)
    wraps = tl.load(wrapped + scene) != 0
    row = tl.arange(0, pad)
    number = tl.full((), 0, tl.int32)
    while number < count:
        crop = scene * count + number
        side = tl.load(sides + crop).to(tl.int32)
        mixed = glyph_at_size(
            images + tl.load(corners + crop), table + side * (largest * width), side, row, row, width, padded
        )
        ink = tl.floor(mixed + 0.5).to(tl.int32)  # (pad, pad)
        corner = pictures + scene * (3 * size * size) + tl.load(tops + crop) * size + tl.load(lefts + crop)
        at = corner + row[:, None] * size + row[None, :]
        for channel in tl.static_range(3):
            colour = tl.load(colours + crop * 3 + channel).to(tl.int32)
            light = tl.where(wraps, _cut_by_255(ink * colour), ((ink * colour + 128) * 257) >> 16)
            total = tl.load(at + channel * size * size, mask=ink > 0, other=0).to(tl.int32) + light
            total = tl.where(wraps, total & 255, tl.minimum(total, 255))
            tl.store(at + channel * size * size, total.to(tl.uint8), mask=ink > 0)
        tl.debug_barrier()  # crops may cross: the next one reads what this one wrote
        number += 1


@triton.jit(do_not_specialize_on_alignment=["pictures", "corners", "widths", "areas", "mirrors", "pixels"])
def _cut(
    pictures,
    corners,
    widths,
    areas,
    mirrors,
    pixels,
    size: tl.constexpr,
    columns: tl.constexpr,
):
    plane = tl.program_id(0).to(tl.int64)
    scene = plane // 3
    width = tl.load(widths + scene)
    column = tl.arange(0, columns)
    source = tl.where(tl.load(mirrors + scene) != 0, size - 1 - column, column)
    first = pixels + tl.load(corners + scene) + (plane % 3) * tl.load(areas + scene)
    top = tl.full((), 0, tl.int32)
    while top < size:
        row = top + tl.arange(0, 32)
        inside = (row < size)[:, None] & (column < size)[None, :]
        glyph_row = tl.load(first + row[:, None] * width + source[None, :], mask=inside, other=0)  # (32, columns)
        tl.store(pictures + plane * (size * size) + row[:, None] * size + column[None, :], glyph_row, mask=inside)
        top += 32
