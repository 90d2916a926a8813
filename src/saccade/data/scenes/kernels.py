"""Placing digits, painting them, strewing distractors and cutting photographs on a GPU, one kernel each, in Triton.

Imported only where Triton is there, see ``fused.py``.

The operations of ``placement.py`` and ``render.py`` are small, and a GPU spends its time on starting them. Here one
program places all digits of one scene: occupied pixels are two 64-bit words for each picture row and stay in registers,
tries are tested a few at a time, and the first that fits is the answer. Another program paints one digit, a third adds
the crops of one scene, a fourth cuts one plane from a photograph.

Results are those of the other files to the last bit. Draws and blending are whole numbers. Glyphs are resized by the
coefficients of ``resize.py``: products of 8-bit numbers, whose sums have at most 16 bits, so that float16 operands with
float32 sums are exact in any order.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import State
from saccade.data.scenes.resize import GLYPH, coefficients

_TRIES = 16  # tested at once; most digits need fewer
_WARPS = 4
_TILE = 32  # a digit is painted in squares of this side; two in three digits are smaller


def place(
    glyphs: GlyphSet,
    glyph: Tensor,
    scene: State,
    present: Tensor,
    *,
    size: int,
    extents: tuple[int, int],
    stream: int,
    max_tries: int,
    attempts: int,
    tries: int = _TRIES,
    warps: int = _WARPS,
) -> tuple[Tensor, Tensor]:
    """Scales and positions of the digits of B scenes, each by as many attempts as it takes.

    Args:
        glyphs: material of the digits.
        glyph: (B, N) ids in ``glyphs``.
        scene: hash state of each scene, lanes (B,).
        present: (B, N) bool, the digits of a scene first.
        size: side of the picture, at most 128: two words for each row.
        extents: range of the scale in 2⁻¹⁶ px, upper end excluded.
        stream: number of the stream of draws.
        max_tries: tries for each digit before the scene is begun anew.
        attempts: how often a scene is begun.
        tries: tried at once.
        warps: of each program.

    Returns:
        extent, x and y as (3, B, N), zero where nothing is present, and complete (B,) bool: all found room.
    """
    (batch, slots), (low, high) = present.shape, extents
    largest = (high - 1) >> 16
    places = torch.zeros(3, batch, slots, dtype=torch.int64, device=present.device)
    complete = torch.zeros(batch, dtype=torch.bool, device=present.device)
    if batch:
        _place[(batch,)](
            *(lane.contiguous() for lane in scene),
            present.sum(dim=1),
            glyph.contiguous(),
            glyphs.images,
            _table(largest, present.device),
            places,
            complete,
            batch,
            low,
            high - low,
            max_tries,
            attempts,
            size=size,
            slots=slots,
            largest=largest,
            counter=stream,
            tries=tries,
            num_warps=warps,
        )
    return places, complete


def paint(
    pictures: Tensor,
    glyphs: GlyphSet,
    glyph: Tensor,
    side: Tensor,
    x: Tensor,
    y: Tensor,
    present: Tensor,
    rgb: Tensor,
    as_authors: Tensor | None = None,
    *,
    largest: int,
    warps: int = _WARPS,
) -> None:
    """Paint digits that share no pixel onto ``pictures`` (B, 3, H, W) uint8, in place.

    Args:
        pictures: what lies behind the digits.
        glyphs: material of the digits.
        glyph: (B, N) ids in ``glyphs``.
        side: (B, N) side of each box.
        x: (B, N) left edges.
        y: (B, N) top edges.
        present: (B, N) bool.
        rgb: (B, N, 3) int64 colours 0..255.
        as_authors: (B,) bool, the scenes that are drawn as the authors draw them, see ``drawing.py``; None: none.
        largest: the largest side there can be.
        warps: of each program.
    """
    if present.numel():
        _paint[(present.numel(),)](
            pictures,
            *(
                column.contiguous()
                for column in (glyph, side, x, y, present, rgb, _flags(as_authors, len(present), present))
            ),
            glyphs.images,
            _table(largest, present.device),
            size=pictures.shape[-1],
            slots=present.shape[1],
            largest=largest,
            tile=_TILE,
            num_warps=warps,
        )


def strew(
    pictures: Tensor,
    glyphs: GlyphSet,
    corner: Tensor,
    side: Tensor,
    x: Tensor,
    y: Tensor,
    rgb: Tensor,
    as_authors: Tensor | None = None,
    *,
    crop: int,
    largest: int,
    warps: int = 1,
) -> None:
    """Add coloured crops of glyphs to ``pictures`` (B, 3, H, W) uint8, in place.

    Args:
        pictures: what the crops are added to.
        glyphs: what they are cut from.
        corner: (B, K) where each crop begins in the flattened glyphs.
        side: (B, K) side of each crop when it is scaled.
        x: (B, K) left edges.
        y: (B, K) top edges.
        rgb: (B, K, 3) int64 colours 0..255.
        as_authors: (B,) bool, the scenes whose sums wrap around; None: none. All others stop at 255.
        crop: side of the crops in the glyphs.
        largest: the largest side there can be.
        warps: of each program.
    """
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
            num_warps=warps,
        )


def cut(pixels: Tensor, corner: Tensor, width: Tensor, area: Tensor, mirrored: Tensor, size: int) -> Tensor:
    """Squares of side ``size`` from photographs, as pictures (B, 3, size, size) uint8.

    Args:
        pixels: (n,) uint8, all photographs with their planes one after the other.
        corner: (B,) where each square begins in ``pixels``.
        width: (B,) of its photograph.
        area: (B,) of its photograph.
        mirrored: (B,) bool: left and right exchanged.
        size: side of the squares, at most 128.
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


def _table(largest: int, device: torch.device) -> Tensor:
    """The coefficients of every side up to ``largest``, as float16: whole 256ths are exact there too."""
    return coefficients(GLYPH, largest, device, torch.float16)


def _flags(as_authors: Tensor | None, batch: int, like: Tensor) -> Tensor:
    """(B,) bool on the device of ``like``: ``as_authors``, or False for all."""
    return torch.zeros(batch, dtype=torch.bool, device=like.device) if as_authors is None else as_authors


# ---------------------------------------------------------------- kernels


@triton.jit
def _mix(x):
    """``hashing._mix`` in uint32, where products wrap as they should."""
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _absorb(a, b, counter):
    """The hash state, with one counter below 2³² taken in."""
    a = _mix(a ^ counter.to(tl.uint32))
    return a, _mix(b + a)


@triton.jit
def _cut_by_255(product):
    """⌊product / 255⌋ for 0 ≤ product ≤ 255²."""
    return (product * 257 + 257) >> 16


@triton.jit
def _box(a, b, low, span, size: tl.constexpr):
    """extent, side, x and y of a try from its two words."""
    extent = low + ((a.to(tl.int64) * span) >> 32)
    side = extent >> 16
    room = size + 1 - side
    product = b.to(tl.int64) * room
    x = product >> 32
    y = ((product & 0xFFFFFFFF) * room) >> 32
    return extent, side.to(tl.int32), x.to(tl.int32), y.to(tl.int32)


@triton.jit
def _columns_below(x):
    """The columns 0 … x − 1 of a word of 64 as bits; all or none where x lies outside."""
    inside = tl.minimum(tl.maximum(x, 0), 63).to(tl.int64)
    bits = (tl.full(inside.shape, 1, tl.int64) << inside) - 1
    return tl.where(x >= 64, tl.full(inside.shape, -1, tl.int64), bits)


@triton.jit
def _mixed(image, table, side, row, column, width: tl.constexpr, pad: tl.constexpr):
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


@triton.jit
def _marked(image, table, side, row, column):
    """The ink of a glyph as one word of 64 columns for each row."""
    mixed = _mixed(image, table, side, row, column, 28, 32)  # (rows, 64)
    bit = tl.full((1, 64), 1, tl.int64) << tl.arange(0, 64)[None, :].to(tl.int64)
    return tl.sum(tl.where(mixed >= 0.5, bit, tl.zeros((1, 64), tl.int64)), axis=1)


@triton.jit(
    do_not_specialize=["batch", "low", "span", "max_tries", "attempts"],
    do_not_specialize_on_alignment=["lane_a", "lane_b", "counts", "glyphs", "images", "table", "places", "complete"],
)
def _place(
    lane_a,
    lane_b,
    counts,
    glyphs,
    images,
    table,
    places,
    complete,
    batch,
    low,
    span,
    max_tries,
    attempts,
    size: tl.constexpr,
    slots: tl.constexpr,
    largest: tl.constexpr,
    counter: tl.constexpr,
    tries: tl.constexpr,
):
    scene = tl.program_id(0)
    count = tl.load(counts + scene).to(tl.int32)
    scene_a, scene_b = _absorb(
        tl.load(lane_a + scene).to(tl.uint32), tl.load(lane_b + scene).to(tl.uint32), tl.full((), counter, tl.uint32)
    )
    row = tl.arange(0, 128)
    word = tl.arange(0, 64)
    number = tl.arange(0, tries)
    span = span.to(tl.int64)

    attempt = tl.full((), 0, tl.int32)
    slot = tl.full((), 0, tl.int32)  # digits placed
    while (slot < count) & (attempt < attempts):
        attempt_a, attempt_b = _absorb(scene_a, scene_b, attempt)
        left = tl.zeros((128,), tl.int64)  # occupied pixels: columns 0 … 63 of each row
        right = tl.zeros((128,), tl.int64)  # and 64 … 127
        slot = tl.full((), 0, tl.int32)
        room = tl.full((), 1, tl.int32)  # whether every digit so far has found some
        while (slot < count) & (room != 0):
            slot_a, slot_b = _absorb(attempt_a, attempt_b, slot)
            start = tl.full((), 0, tl.int32)
            first = max_tries + tl.full((), 0, tl.int32)  # number of the first free try
            while (start < max_tries) & (first >= max_tries):
                tried = start + number  # (tries,)
                try_a, try_b = _absorb(slot_a, slot_b, tried)
                _, side, x, y = _box(try_a, try_b, low, span, size)
                in_left = _columns_below(x + side) ^ _columns_below(x)
                in_right = _columns_below(x + side - 64) ^ _columns_below(x - 64)
                in_rows = (row[None, :] >= y[:, None]) & (row[None, :] < (y + side)[:, None])  # (tries, 128)
                met = (left[None, :] & in_left[:, None]) | (right[None, :] & in_right[:, None])
                taken = tl.max((in_rows & (met != 0)).to(tl.int32), axis=1)  # (tries,)
                first = tl.min(tl.where((taken == 0) & (tried < max_tries), tried, max_tries), axis=0)
                start += tries
            if first < max_tries:
                try_a, try_b = _absorb(slot_a, slot_b, first)
                extent, side, x, y = _box(try_a, try_b, low, span, size)
                at = places + scene.to(tl.int64) * slots + slot
                plane = batch.to(tl.int64) * slots
                tl.store(at, extent)
                tl.store(at + plane, x.to(tl.int64))
                tl.store(at + 2 * plane, y.to(tl.int64))
                if slot + 1 < count:
                    image = images + tl.load(glyphs + scene.to(tl.int64) * slots + slot) * 784
                    of_side = table + side * (largest * 28)
                    if x < 64:
                        left |= _marked(image, of_side, side, row - y, word - x)
                    if x + side > 64:
                        right |= _marked(image, of_side, side, row - y, word + 64 - x)
                slot += 1
            else:
                room = tl.full((), 0, tl.int32)
        attempt += 1
    tl.store(complete + scene, slot == count)


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
                ink = tl.floor(_mixed(image, of_side, side, row, column, 28, 32) + 0.5).to(tl.int32)  # (tile, tile)
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
        mixed = _mixed(
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
        found = tl.load(first + row[:, None] * width + source[None, :], mask=inside, other=0)  # (32, columns)
        tl.store(pictures + plane * (size * size) + row[:, None] * size + column[None, :], found, mask=inside)
        top += 32
