"""Where the next glyph may go: rejection sampling against bit-packed occupancy.

The authors redraw scale and position until the candidate's *box* holds no non-zero pixel of the glyphs already
placed. A try here is a function of its number alone, so tries can be tested many at once, in any grouping, and the
first that fits is the answer whatever the grouping was.

Occupied pixels are bits: a picture row is a few 63-bit words. For each row the OR of the 1, 2, 4, 8 … rows from it on
is kept, so "which columns are occupied anywhere in rows y … y + s − 1" is two lookups, and a try costs a handful of
integer operations however large its box is. Everything about a try but those lookups is known beforehand and worked
out for all glyphs of all scenes together: on a GPU the number of kernels, not their work, sets the pace.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from saccade.data.hashing import State, hash_words, uniform_pair_below

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
    """Where the OR of the upper rows of the box is kept, within a picture's table …"""
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
        self._table_start = torch.arange(batch, device=device) * (self._levels * size)
        self._level_start, self._second_half = _lookups(size, self._lowest, device)
        self._joined = self._join()

    def draw(self, draws: State, numbers: Tensor, extents: tuple[int, int]) -> Tries:
        """The tries ``numbers``: scale uniform over ``extents`` (low, high), then a position inside the picture."""
        low, high = extents
        for_scale, for_place = hash_words(draws, numbers)
        extent = low + ((for_scale * (high - low)) >> 32)
        side = extent >> FRACTION_BITS
        x, y = uniform_pair_below(for_place, self.size + 1 - side)
        upper = self._level_start[side] + y
        columns = torch.stack([_ones(x + side - _WORD * w) ^ _ones(x - _WORD * w) for w in range(self.words)])
        return Tries(extent, x, y, upper, upper + self._second_half[side], columns)

    def is_free(self, pictures: Tensor, tries: Tries) -> Tensor:
        """Whether boxes (n, t) in pictures (n,) hold no occupied pixel: (n, t) bool."""
        start = self._table_start[pictures, None]  # (n, 1)
        occupied = self._joined[:, start + tries.upper] | self._joined[:, start + tries.lower]  # (words, n, t)
        return ((occupied & tries.columns) == 0).all(dim=0)

    def add(self, pictures: Tensor, glyph_rows: Tensor, x: Tensor, y: Tensor) -> None:
        """Mark glyphs as placed; call :meth:`refresh` before the next question.

        Args:
            pictures: (n,) which picture each glyph goes into, no picture twice.
            glyph_rows: (n, p, g) packed rows of the glyphs, from :func:`packed_rows`.
            x: (n,) left edge of each glyph's box.
            y: (n,) top edge.
        """
        row = y[:, None] + torch.arange(glyph_rows.shape[1], device=y.device)  # (n, p)
        at = (slice(None), pictures[:, None], row)
        self._rows[at] = self._rows[at] | _shifted(glyph_rows, x, self.words)  # (words, n, p)

    def refresh(self) -> None:
        """Make what :meth:`add` marked visible to :meth:`is_free`."""
        self._joined = self._join()

    def _join(self) -> Tensor:
        """(words, B · levels · size): the OR of 2^level rows from each row on."""
        joined = self._rows[..., : self.size]
        kept = [joined]
        for level in range(self._lowest + self._levels - 1):
            reach = 1 << level
            joined = torch.cat([joined[..., :-reach] | joined[..., reach:], joined[..., -reach:]], dim=-1)
            kept.append(joined)
        return torch.stack(kept[self._lowest :], dim=2).view(self.words, -1)


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
    pending, tries = torch.arange(len(wanted), device=wanted.device), first_tries
    extent, x, y, found = _first_of(tries, occupancy.is_free(pending, tries))
    start = blocks[0]
    for block in blocks[1:]:
        pending = (wanted & ~found).nonzero().squeeze(1)
        if not len(pending):
            break
        numbers = torch.arange(start, start + block, device=wanted.device)
        tries = occupancy.draw((draws[0][pending, None], draws[1][pending, None]), numbers, extents)  # (n, block)
        extent[pending], x[pending], y[pending], found[pending] = _first_of(tries, occupancy.is_free(pending, tries))
        start += block
    return extent, x, y, found


def packed_rows(patches: Tensor) -> Tensor:
    """The non-zero pixels of patches (n, p, p) as words (n, p, ⌈p/63⌉), column 0 in the lowest bit."""
    powers, shifts = _packing(patches.shape[-1], patches.device)
    with torch.autocast(patches.device.type, enabled=False):
        parts = (patches > 0).float() @ powers  # (n, p, 3·words)
    # The parts share no bit, so their sum is their union.
    words = parts.shape[-1] // len(shifts)
    return (parts.long().view(*parts.shape[:-1], words, len(shifts)) << shifts).sum(dim=-1)


@lru_cache(maxsize=32)
def _lookups(size: int, lowest: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """By side of a box: where the ORs of its highest power of two begin, and how far down the second one lies."""
    levels = [max(side.bit_length() - 1, lowest) for side in range(size + 1)]
    level_start = torch.tensor([(level - lowest) * size for level in levels])
    second_half = torch.tensor([side - (1 << level) for side, level in enumerate(levels)])
    return level_start.to(device), second_half.to(device)


@lru_cache(maxsize=32)
def _packing(width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The matrix that turns ``width`` columns into numbers of 21 bits, and where in a word those go."""
    words, parts = -(-width // _WORD), _WORD // _PART
    powers = torch.zeros(width, words * parts)
    for column in range(width):
        powers[column, column // _PART] = 2.0 ** (column % _PART)
    return powers.to(device), (_PART * torch.arange(parts)).to(device)


def _first_of(tries: Tries, free: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """extent, x, y (n,) of the first free try in each row, and whether there is one."""
    count = free.shape[1]
    order = torch.where(free, torch.arange(count, device=free.device), count).amin(dim=1)  # (n,)
    pick = order.clamp(max=count - 1)[:, None]
    extent, x, y = (part.gather(1, pick).squeeze(1) for part in (tries.extent, tries.x, tries.y))
    return extent, x, y, order < count


def _shifted(words: Tensor, x: Tensor, count: int) -> Tensor:
    """Rows (n, p, g) moved ``x`` (n,) columns to the right: (count, n, p)."""
    whole = (x // _WORD)[:, None, None]
    rest = x[:, None, None] - _WORD * whole
    # Each target word is the low end of one source word and the high end of the one before it; zeros all around.
    sources = pad(words, (count, count - words.shape[-1]))  # (n, p, 2·count)
    at = (torch.arange(count, 2 * count, device=x.device) - whole).expand(-1, words.shape[1], -1)  # (n, p, count)
    low_end = (sources.gather(2, at) & _ones(_WORD - rest)) << rest
    return (low_end | sources.gather(2, at - 1) >> (_WORD - rest)).movedim(-1, 0)


def _ones(count: Tensor) -> Tensor:
    """Words whose lowest ``count`` bits are set; counts are cut to 0 … 63."""
    return ((1 << _WORD) - 1) >> (_WORD - count.clamp(0, _WORD))
