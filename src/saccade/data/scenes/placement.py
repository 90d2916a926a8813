"""Where the next glyph may go: rejection sampling against bit-packed occupancy.

The authors redraw scale and position until the candidate's *box* holds no non-zero pixel of the glyphs already
placed. A try here is a function of its number alone, so tries can be tested many at once, in any grouping, and the
first that fits is the answer whatever the grouping was.

Occupied pixels are bits: a picture row is a few 63-bit words. For each row the OR of the 1, 2, 4, 8 … rows from it on
is kept, so "which columns are occupied anywhere in rows y … y + s − 1" is two lookups, and a try costs a handful of
integer operations however large its box is. Everything about a try but those lookups is known beforehand, and for the
first tries worked out for all glyphs of all scenes together: on a GPU the number of kernels sets the pace.

This file is for devices without the kernels of ``kernels/``; ``host.py`` does the same on the host. All
three find the same places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from saccade.data.scenes.hashing import State, hash_words, uniform_pair_below

_WORD = 63  # bits per int64 word; the sign bit stays free so that right shifts bring in zeros
_PART = 21  # columns packed by one float32 product: sums stay below 2²⁴, hence exact

FRACTION_BITS = 16
"""Extents (the side of a glyph before truncation) are whole numbers of 2⁻¹⁶ px."""


@dataclass(frozen=True)
class Tries:
    """Candidate boxes, with what :class:`Occupancy` needs to test them; tensors of one shape but for ``columns``."""

    extent: Tensor
    """28 · scale in 2⁻¹⁶ px; the side of the box is its integer part."""
    x: Tensor
    y: Tensor
    upper: Tensor
    """Where the OR of the upper rows of the box is kept …"""
    lower: Tensor
    """… and that of the lower rows; together they cover the box."""
    columns: Tensor
    """(words, …) the columns of the box as bits."""

    def of_slot(self, slot: int) -> Tries:
        """The tries of one object, where the object is the first axis."""
        return Tries(
            self.extent[slot],
            self.x[slot],
            self.y[slot],
            self.upper[slot],
            self.lower[slot],
            self.columns[:, slot],
        )


class Occupancy:
    """The non-zero pixels of a batch of square pictures, and the question whether a box is free of them.

    Args:
        batch: number of pictures.
        size: side of a picture in pixels.
        smallest: the smallest box that will be asked for.
        device: where the words live.
    """

    def __init__(self, batch: int, size: int, smallest: int, device: torch.device) -> None:
        self.size = size
        self.words = -(-size // _WORD)
        # As many rows again below the picture, so that a glyph's empty padding never falls outside.
        self._rows = torch.zeros(self.words, batch, 2 * size, dtype=torch.int64, device=device)
        self._lowest = smallest.bit_length() - 1
        self._levels = size.bit_length() - self._lowest
        self._numbers = torch.arange(batch, device=device)
        self._table_start = self._numbers * (self._levels * size)
        self._level_start, self._second_half = _lookups(size, self._lowest, device)
        self._joined = self._rows.new_zeros(self.words, batch * self._levels * size)

    def draw(self, pictures: Tensor | slice, draws: State, numbers: Tensor, extents: tuple[int, int]) -> Tries:
        """The tries ``numbers``: scale uniform over ``extents`` (low, high), then a position inside the picture.

        Args:
            pictures: (n,) which pictures the tries are for.
            draws: hash state, lanes (…, n, 1).
            numbers: (t,); the tries are (…, n, t).
            extents: range of the scale in 2⁻¹⁶ px.
        """
        low, high = extents
        for_scale, for_place = hash_words(draws, numbers)
        extent = low + ((for_scale * (high - low)) >> 32)
        side = extent >> FRACTION_BITS
        x, y = uniform_pair_below(for_place, self.size + 1 - side)
        upper = self._table_start[pictures, None] + self._level_start[side] + y
        left_of = _columns_left_of(self.size, x.device)  # (words, size + 1)
        columns = left_of[:, x + side] ^ left_of[:, x]  # (words, …, n, t)
        return Tries(extent, x, y, upper, upper + self._second_half[side], columns)

    def is_free(self, tries: Tries) -> Tensor:
        """Whether boxes (n, t) hold no occupied pixel: (n, t) bool."""
        occupied = self._joined[:, tries.upper] | self._joined[:, tries.lower]  # (words, n, t)
        return ((occupied & tries.columns) == 0).all(dim=0)

    def add(self, pictures: Tensor | slice, marks: Tensor, x: Tensor, y: Tensor) -> None:
        """Mark glyphs as placed; call :meth:`refresh` before the next question.

        Args:
            pictures: (n,) which picture each glyph goes into, no picture twice.
            marks: (n, p, p) float32: ones where a glyph has ink.
            x: (n,) left edge of each glyph's box.
            y: (n,) top edge.
        """
        row = y[:, None] + torch.arange(marks.shape[1], device=y.device)  # (n, p)
        at = (slice(None), self._numbers[pictures, None], row)
        self._rows[at] = self._rows[at] | packed_rows(marks, x, self.size)  # (words, n, p)

    def refresh(self) -> None:
        """Make what :meth:`add` marked visible to :meth:`is_free`."""
        self._joined = self._join()

    def _join(self) -> Tensor:
        """(words, B · levels · size): the OR of 2^level rows from each row on."""
        joined = self._rows
        kept = [joined]
        for level in range(self._lowest + self._levels - 1):
            reach = 1 << level
            joined = joined[..., :-reach] | joined[..., reach:]  # what lies below the picture is empty
            kept.append(joined)
        return torch.stack([rows[..., : self.size] for rows in kept[self._lowest :]], dim=2).view(self.words, -1)


def first_free(
    occupancy: Occupancy,
    first_tries: Tries,
    draws: State,
    extents: tuple[int, int],
    blocks: tuple[int, ...],
    wanted: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The first try of each picture whose box is free.

    Args:
        occupancy: what is already placed.
        first_tries: (B, blocks[0]) tries, drawn beforehand.
        draws: hash state, lanes (B,), from which to draw more.
        extents: see :meth:`Occupancy.draw`.
        blocks: how many tries to test at a time; their sum is the limit.
        wanted: (B,) bool: the pictures that need this glyph at all.

    Returns:
        extent, x, y (B,) and found (B,) bool; where it is false the others mean nothing.
    """
    extent, x, y, found = _first_of(first_tries, occupancy.is_free(first_tries))
    start = blocks[0]
    for block in blocks[1:]:
        pending = (wanted & ~found).nonzero().squeeze(1)
        if not len(pending):
            break
        numbers = torch.arange(start, start + block, device=wanted.device)
        lanes = (draws[0][pending, None], draws[1][pending, None])  # (n, 1)
        tries = occupancy.draw(pending, lanes, numbers, extents)  # (n, block)
        extent[pending], x[pending], y[pending], found[pending] = _first_of(tries, occupancy.is_free(tries))
        start += block
    return extent, x, y, found


def packed_rows(marks: Tensor, x: Tensor, size: int) -> Tensor:
    """The rows of marks (n, p, p), moved ``x`` (n,) columns to the right, as words (⌈size/63⌉, n, p).

    Column 0 is the lowest bit of the first word. The bits come from a product with powers of two, which has them in
    place at once.
    """
    powers, shifts = _packing(size, marks.device)
    column = x[:, None] + torch.arange(marks.shape[-1], device=x.device)  # (n, p)
    with torch.autocast(marks.device.type, enabled=False):
        parts = marks @ powers[column]  # (n, p, 3·words)
    # The parts share no bit, so their sum is their union.
    words = parts.shape[-1] // len(shifts)
    return (parts.long().view(*parts.shape[:-1], words, len(shifts)) << shifts).sum(dim=-1).movedim(-1, 0)


@lru_cache(maxsize=32)
def _lookups(size: int, lowest: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """By side of a box: where the ORs of its highest power of two begin, and how far down the second one lies."""
    levels = [max(side.bit_length() - 1, lowest) for side in range(size + 1)]
    level_start = torch.tensor([(level - lowest) * size for level in levels])
    second_half = torch.tensor([side - (1 << level) for side, level in enumerate(levels)])
    return level_start.to(device), second_half.to(device)


@lru_cache(maxsize=32)
def _packing(size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The matrix that turns columns of a picture into numbers of 21 bits, and where in a word those go.

    It has as many rows again, of zeros, for a glyph's empty padding.
    """
    words, parts = -(-size // _WORD), _WORD // _PART
    powers = torch.zeros(2 * size, words * parts)
    for column in range(size):
        powers[column, column // _PART] = 2.0 ** (column % _PART)
    return powers.to(device), (_PART * torch.arange(parts)).to(device)


@lru_cache(maxsize=32)
def _columns_left_of(size: int, device: torch.device) -> Tensor:
    """(words, size + 1): the columns 0 … x − 1 of a picture as bits, for each x."""
    first = _WORD * torch.arange(-(-size // _WORD))[:, None]  # of each word
    inside = (torch.arange(size + 1) - first).clamp(0, _WORD)  # how many columns of each word
    return (((1 << _WORD) - 1) >> (_WORD - inside)).to(device)


def _first_of(tries: Tries, free: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """extent, x, y (n,) of the first free try in each row, and whether there is one."""
    pick = free.view(torch.uint8).argmax(dim=1, keepdim=True)  # (n, 1) the first of equals
    extent, x, y, found = (part.gather(1, pick).squeeze(1) for part in (tries.extent, tries.x, tries.y, free))
    return extent, x, y, found
