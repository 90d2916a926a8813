"""Places for digits: one program places all digits of one scene.

Occupied pixels are two 64-bit words for each picture row and stay in registers. Tries are tested a few at a time, and
the first that fits is the answer. Draws are whole numbers, as in ``hashing.py``.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from saccade.data.scenes.drawing import GLYPH, coefficients
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import State

# mypy: disable-error-code="no-untyped-def, untyped-decorator"


_TRIES = 16  # tested at once; most digits need fewer
_WARPS = 4


def place(
    glyphs: GlyphSet,
    glyph: Tensor,  # (B, N) ids in ``glyphs``
    scene: State,  # hash state of each scene, lanes (B,)
    present: Tensor,  # (B, N) bool, the digits of a scene first
    *,
    size: int,  # of the picture, at most 128: two words for each row
    extents: tuple[int, int],  # range of the scale in 2⁻¹⁶ px, upper end excluded
    stream: int,  # number of the stream of draws
    max_tries: int,  # for each digit before the scene is begun anew
    attempts: int,  # how often a scene is begun
) -> tuple[Tensor, Tensor]:
    """Scales and positions of the digits of B scenes, each by as many attempts as it takes.

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
            size_table(largest, present.device),
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
            tries=_TRIES,
            num_warps=_WARPS,
        )
    return places, complete


@triton.jit
def _mix(x):
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _absorb(a, b, counter):
    a = _mix(a ^ counter.to(tl.uint32))
    return a, _mix(b + a)


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
def _marked(image, table, side, row, column):
    """The ink of a glyph as one word of 64 columns for each row."""
    mixed = glyph_at_size(image, table, side, row, column, 28, 32)  # (rows, 64)
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


# mypy: disable-error-code="no-untyped-def, untyped-decorator"


def size_table(largest: int, device: torch.device) -> Tensor:
    """The coefficients of every side up to ``largest``, as float16: whole 256ths are exact there too."""
    return coefficients(GLYPH, largest, device, torch.float16)


@triton.jit
def glyph_at_size(image, table, side, row, column, width: tl.constexpr, pad: tl.constexpr):
    """The rows and columns asked for of a cut of ``width``, at the size ``side``, before the last rounding.

    The cut begins at ``image``; ``table`` has the coefficients; ``pad`` is the width as a power of two.
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
