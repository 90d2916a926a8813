"""Where digits go, and how they are painted, on the host, in NumPy.

The authors redraw scale and position until the candidate's *box* holds no non-zero pixel of the glyphs already
placed. A try here is a function of its number alone, so tries can be tested many at once, in any grouping, and the
first that fits is the answer whatever the grouping was. ``kernels/placing.py`` finds the same places on a GPU.

Occupied pixels are bits: a picture row is a few 64-bit words. For each row the OR of the 1, 2, 4, 8 … rows from it on
is kept, so "which columns are occupied anywhere in rows y … y + s − 1" is two lookups, and a try costs a handful of
integer operations however large its box is. Lanes of the hash are 32-bit numbers, whose products wrap as they should.
Tries are tested in rounds that grow, and each round is for the scenes that still need it, since half of all digits find
room within eight tries and one in a hundred needs two hundred. Glyphs of the same size are resized together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saccade.data.scenes.drawing import FRACTION_BITS, GLYPH, coefficients_of
from saccade.data.scenes.hashing import State

_WORD = 64  # columns in a word of occupied pixels
_CACHED = 64  # pictures whose rows are joined while they are in the processor's cache
_FIRST_ROUND = 8  # tries; each round has twice as many as the one before

Array = NDArray[Any]
Lanes = tuple[Array, Array]


def place_on_host(
    images: Array,
    glyph: Tensor,
    scene: State,
    present: Tensor,
    *,
    size: int,
    extents: tuple[int, int],
    draws: tuple[int, int],
    max_tries: int,
) -> tuple[Tensor, Tensor]:
    """One attempt at scales and positions of the digits of B scenes, digit by digit.

    Args:
        images: (n, 28, 28) uint8 glyphs.
        glyph: (B, N) ids in ``images``.
        scene: hash state of each scene, lanes (B,).
        present: (B, N) bool, the digits of a scene first.
        size: side of the picture.
        extents: range of the scale in 2⁻¹⁶ px, upper end excluded.
        draws: counters that lead from the scene to the draws of this attempt.
        max_tries: tries for each digit.

    Returns:
        extent, x and y as (3, B, N), zero where nothing is present, and complete (B,) bool: all found room.
    """
    batch, slots = present.shape
    order = torch.argsort(present.sum(dim=1), descending=True, stable=True)
    wanted, glyphs = present[order].numpy(), glyph[order].numpy()
    going_on = wanted.sum(axis=0).tolist()  # in how many scenes, the first ones, there is a digit in each slot
    lanes: Lanes = (scene[0][order].numpy().astype(np.uint32), scene[1][order].numpy().astype(np.uint32))
    for counter in draws:
        lanes = _absorb(lanes, np.uint32(counter))
    occupied = _Occupied(batch, size, extents[0] >> FRACTION_BITS)
    places = np.zeros((3, batch, slots), np.int64)
    complete = np.ones(batch, np.bool_)
    for slot in range(slots):
        going = np.flatnonzero(complete[: going_on[slot]])  # (n,) scenes
        if not len(going):
            break
        of_slot = _absorb((lanes[0][going], lanes[1][going]), np.uint32(slot))
        found = np.zeros((4, len(going)), np.int64)  # extent, x, y, and whether there is one
        unplaced, first = np.arange(len(going)), 0
        for tries in _rounds(max_tries, none_occupied=slot == 0):
            numbers = np.arange(first, first + tries, dtype=np.uint32)
            still = (of_slot[0][unplaced, None], of_slot[1][unplaced, None])
            found[:, unplaced] = occupied.first_free(going[unplaced], still, numbers, extents)
            unplaced = unplaced[found[3, unplaced] == 0]
            first += tries
            if not len(unplaced):
                break
        places[:, going, slot] = found[:3] * found[3]
        complete[going] = found[3] != 0
        if slot + 1 < slots:
            marked = np.flatnonzero(complete[going[: np.searchsorted(going, going_on[slot + 1])]])
            occupied.add(going[marked], images, glyphs[going[marked], slot], *found[:3, marked])
            occupied.join(going_on[slot + 1])
    # A scene that found no room keeps what it has; the next attempt replaces all of it.
    back = torch.argsort(order)
    return torch.from_numpy(places)[:, back], torch.from_numpy(complete)[back]


class _Occupied:
    """The non-zero pixels of a batch of square pictures as bits, and the question whether a box is free of them.

    For every row it keeps the OR of the 2^level rows from it on, for the levels that boxes ask for. A box then asks for
    two entries: the one at its top, and the one that ends at its bottom.
    """

    def __init__(self, batch: int, size: int, smallest: int) -> None:
        self.size, self.words = size, -(-size // _WORD)
        self._lowest = smallest.bit_length() - 1
        levels = size.bit_length() - self._lowest
        self._rows = np.zeros((self.words, batch, size), np.uint64)
        self._joined = np.zeros((self.words, levels, batch, size), np.uint64)

    def first_free(self, pictures: Array, draws: Lanes, numbers: Array, extents: tuple[int, int]) -> Array:
        """extent, x, y (n,) of the first of the tries ``numbers`` (t,) that is free, and whether there is one.

        Args:
            pictures: (n,) which pictures are asked about.
            draws: hash state, lanes (n, 1).
            numbers: (t,) of the tries.
            extents: range of the scale in 2⁻¹⁶ px.
        """
        low, high = extents
        for_scale, for_place = _absorb(draws, numbers)  # (n, t) each
        extent = low + ((for_scale.astype(np.int64) * (high - low)) >> 32)
        side = extent >> FRACTION_BITS
        room = self.size + 1 - side
        product = for_place.astype(np.int64) * room
        x, y = product >> 32, ((product & 0xFFFFFFFF) * room) >> 32
        level_start, second_half = _lookups(self.size, self._lowest)
        upper = level_start.take(side) * self._rows.shape[1] + pictures[:, None] * self.size + y
        lower = upper + second_half.take(side)
        right = x + side
        taken = np.zeros(x.shape, np.uint64)
        for word, left_of in enumerate(_columns_left_of(self.size)):
            joined = self._joined[word].reshape(-1)
            met = joined.take(upper)
            met |= joined.take(lower)
            met &= left_of.take(right) ^ left_of.take(x)
            taken |= met
        free = taken == 0  # (n, t)
        pick = free.argmax(axis=1)  # (n,) the first of equals
        at = np.arange(len(pick)) * len(numbers) + pick
        return np.stack([extent.take(at), x.take(at), y.take(at), free.take(at)])

    def add(self, pictures: Array, images: Array, glyph: Array, extent: Array, x: Array, y: Array) -> None:
        """Mark glyphs (n,) of ``images`` as placed, one in each of ``pictures`` (n,); call :meth:`join` afterwards."""
        side = extent >> FRACTION_BITS
        order = side.argsort(kind="stable")
        side, glyph = side[order], glyph[order]
        ends = side.cumsum()
        rows = np.zeros((int(side.sum()), 8 * self.words), np.uint8)  # every row of every glyph, bits in bytes
        for size, start, stop in alike(side):
            ink = mixed_alike(images.take(glyph[start:stop], axis=0), size) >= HALF  # (k, size, size)
            packed = np.packbits(ink, axis=-1, bitorder="little").reshape(size * (stop - start), -1)
            last = int(ends[stop - 1])
            rows[last - len(packed) : last, : packed.shape[1]] = packed
        # Where each row goes, and how far to the right.
        target = np.arange(len(rows)) + np.repeat(pictures[order] * self.size + y[order] - ends + side, side)
        shift = np.repeat(x[order].astype(np.uint64), side)
        for word, bits in enumerate(_shifted(rows.view("<u8").astype(np.uint64, copy=False), shift)):
            self._rows[word].reshape(-1)[target] |= bits

    def join(self, pictures: int) -> None:
        """Make what was marked in the first ``pictures`` visible to :meth:`first_free`."""
        for start in range(0, pictures, _CACHED):
            part = slice(start, min(start + _CACHED, pictures))
            joined = self._rows[:, part]
            if self._lowest == 0:
                self._joined[:, 0, part] = joined
            for level in range(1, self._lowest + self._joined.shape[1]):
                reach = 1 << (level - 1)
                kept = self._joined[:, max(level - self._lowest, 0), part]
                # Boxes lie inside the picture, so nobody asks for rows that reach below it.
                np.bitwise_or(joined[..., :-reach], joined[..., reach:], out=kept[..., :-reach])
                joined = kept


def _shifted(rows: Array, shift: Array) -> Iterator[Array]:
    """Rows (r, words) of bits, moved ``shift`` (r,) columns to the right, word by word."""
    whole, part = shift >> np.uint64(6), shift & np.uint64(63)
    back = np.uint64(63) - part  # and one more: a shift by 64 at once would have no effect
    for word in range(rows.shape[1]):
        bits = np.zeros(len(rows), np.uint64)
        for source in range(word + 1):
            moved = rows[:, source] << part
            if source:
                moved |= (rows[:, source - 1] >> back) >> np.uint64(1)
            bits |= np.where(whole == np.uint64(word - source), moved, np.uint64(0))
        yield bits


def _absorb(lanes: Lanes, counter: Array | np.uint32) -> Lanes:
    """``hashing.hash_words`` with one counter below 2³², for lanes that are 32-bit numbers."""
    a = _mix(lanes[0] ^ counter)
    return a, _mix(lanes[1] + a)


def _mix(x: Array) -> Array:
    x = x ^ (x >> np.uint32(16))  # a new array; from here on in place
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def _rounds(max_tries: int, *, none_occupied: bool) -> Iterator[int]:
    """How many tries to test at a time; where nothing is occupied, the first one is free."""
    tries = 1 if none_occupied else _FIRST_ROUND
    while max_tries > 0:
        yield min(tries, max_tries)
        max_tries -= tries
        tries *= 2


@lru_cache(maxsize=32)
def _lookups(size: int, lowest: int) -> tuple[Array, Array]:
    """By side of a box: how many rows of a picture come before its level, and how far down its second entry lies."""
    levels = [max(side.bit_length() - 1, lowest) for side in range(size + 1)]
    level_start = np.array([(level - lowest) * size for level in levels])
    return level_start, np.array([side - (1 << level) for side, level in enumerate(levels)])


@lru_cache(maxsize=32)
def _columns_left_of(size: int) -> Array:
    """(words, size + 1): the columns 0 … x − 1 of a picture as bits, for each x."""
    words = -(-size // _WORD)
    table = [[(1 << min(max(x - _WORD * word, 0), _WORD)) - 1 for x in range(size + 1)] for word in range(words)]
    return np.array(table, np.uint64)


_TOGETHER = 1 << 16  # pixels of a resized glyph at a time

# Number of the object, position in the flattened batch of pictures, and ink 1 .. 255: (m,) int64, int64, uint16.
Pixels = tuple[Array, Array, Array]


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


HALF = np.float32(0.5)  # What is added before a number is cut to a whole one; from here on a pixel has ink


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
