"""The authors' scene sampler, as a pure function of (seed, scene number).

Per scene: a number of digits, uniform; identities, a random permutation of 0..9; colours, independent and with repeats;
one normal number of noise per colour; then, digit by digit, scale and position by rejection: on a GPU by
``kernels/placing.py``, else in NumPy. After Seo, Lin, Cohen, Shen and Han, "Progressive Attention Networks for Visual
Attribute Prediction" (arXiv:1606.02393) and the generator the authors released: scale and position are redrawn until
the candidate's *box* holds no non-zero pixel of the glyphs already placed.

Deviation: the authors try without end; here a scene in which a digit finds no place in ``max_tries`` tries draws all
its scales and positions anew. Number, identities, glyphs and colours stay, so they are known without sampling.

A try is a function of its number alone, so many are tested at once, and the first that fits is the answer.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from saccade.data.scenes.drawing import COLOURS, FRACTION_BITS, HALF, Array, resized_alike, runs
from saccade.data.scenes.glyphs import CLASSES, GlyphSet
from saccade.data.scenes.hashing import State, hash_more, hash_state, hash_u32, rounded_normal, uniform_below
from saccade.data.scenes.kernels import try_kernel
from saccade.data.scenes.layout import SceneLayout, SceneSpec
from saccade.errors import DataError

_COUNT, _ORDER, _COLOUR, _NOISE, _GLYPH, _PLACE = range(6)  # streams of draws within a scene
_MAX_ATTEMPTS = 200
_WORD = 64  # columns in a word of occupied pixels
_CACHED = 64  # pictures whose rows are joined while they are in the processor's cache
_FIRST_ROUND = 8  # tries; each round has twice as many as the one before

Lanes = tuple[Array, Array]  # of the hash, as 32-bit numbers, whose products wrap as they should


def scene_counts(spec: SceneSpec, seed: int, indices: Tensor) -> Tensor:
    """(B,) number of digits in each scene, without sampling it."""
    fewest, most = spec.count
    return fewest + uniform_below(hash_u32(seed, indices, _COUNT), most - fewest + 1)


def sample_layout(spec: SceneSpec, glyphs: GlyphSet, seed: int, indices: Tensor) -> SceneLayout:
    """The scenes ``indices`` (B,) of the stream ``seed``, on the device of ``indices``.

    Raises:
        DataError: a scene found no room in many attempts, as happens when digits are too many or too large.
    """
    indices = indices.long()
    glyphs = glyphs.to(indices.device)
    slot = torch.arange(spec.slots, device=indices.device)
    scene = hash_state(seed, indices)  # lanes (B,)
    streams = torch.arange(_ORDER, _GLYPH + 1, device=indices.device)[:, None, None]
    number = torch.arange(CLASSES, device=indices.device)
    bits = hash_more((scene[0][:, None], scene[1][:, None]), streams, number)  # (4, B, 10)
    for_colour, for_noise, for_glyph = bits[1:, :, : spec.slots]
    classes = torch.argsort(bits[0], dim=1, stable=True)[:, : spec.slots]
    glyph = glyphs.pick(classes, for_glyph)
    present = slot < scene_counts(spec, seed, indices)[:, None]
    (extent, x, y), complete = _places(spec, glyphs, glyph, scene, present)
    if not bool(complete.all()):
        raise DataError(
            f"scene {int(indices[~complete][0])}: no room for its digits in {_MAX_ATTEMPTS} attempts of "
            f"{spec.max_tries} tries; lower count {spec.count} or scale {spec.scale}, or enlarge size {spec.size}"
        )
    return SceneLayout(
        spec=spec,
        glyphs=glyphs,
        seed=seed,
        index=indices,
        classes=classes,
        glyph=glyph,
        colour=uniform_below(for_colour, len(COLOURS)),
        noise=rounded_normal(for_noise.contiguous(), spec.noise),
        extent=extent,
        x=x,
        y=y,
        present=present,
    )


def _places(spec: SceneSpec, glyphs: GlyphSet, glyph: Tensor, scene: State, present: Tensor) -> tuple[Tensor, Tensor]:
    """Scales and positions, in as many attempts as it takes; arguments and result as of the kernel ``place``."""
    device = present.device

    def by_one_kernel() -> tuple[Tensor, Tensor]:
        from saccade.data.scenes.kernels.placing import place

        return place(
            glyphs,
            glyph,
            scene,
            present,
            size=spec.size,
            extents=spec.extents,
            stream=_PLACE,
            max_tries=spec.max_tries,
            attempts=_MAX_ATTEMPTS,
        )

    placed = try_kernel(by_one_kernel, device, spec.size)
    if placed is not None:
        return placed
    glyph, present = glyph.cpu(), present.cpu()
    lanes: Lanes = (scene[0].cpu().numpy().astype(np.uint32), scene[1].cpu().numpy().astype(np.uint32))
    places = torch.zeros(3, *present.shape, dtype=torch.int64)
    complete = torch.zeros(len(present), dtype=torch.bool)
    for attempt in range(_MAX_ATTEMPTS):
        rows = (~complete).nonzero().squeeze(1)
        if not len(rows):
            break
        draws = (lanes[0][rows.numpy()], lanes[1][rows.numpy()])
        for counter in (_PLACE, attempt):
            draws = _absorb(draws, np.uint32(counter))
        places[:, rows], complete[rows] = _place_on_host(
            spec, glyphs.images.cpu().numpy(), glyph[rows], draws, present[rows]
        )
    return places.to(device), complete.to(device)


def _place_on_host(
    spec: SceneSpec, images: Array, glyph: Tensor, draws: Lanes, present: Tensor
) -> tuple[Tensor, Tensor]:
    """One attempt of :func:`_places`, digit by digit, with ``draws`` (B,) of its own."""
    batch, slots = present.shape
    order = torch.argsort(present.sum(dim=1), descending=True, stable=True)
    wanted, glyphs = present[order].numpy(), glyph[order].numpy()
    going_on = wanted.sum(axis=0).tolist()  # in how many scenes, the first ones, there is a digit in each slot
    lanes = (draws[0][order.numpy()], draws[1][order.numpy()])
    occupied = _Occupied(batch, spec)
    places = np.zeros((3, batch, slots), np.int64)
    complete = np.ones(batch, np.bool_)
    for slot in range(slots):
        going = np.flatnonzero(complete[: going_on[slot]])  # (n,) scenes
        if not len(going):
            break
        of_slot = _absorb((lanes[0][going], lanes[1][going]), np.uint32(slot))
        spots = np.zeros((4, len(going)), np.int64)  # extent, x, y, and whether there is one
        unplaced, first = np.arange(len(going)), 0
        tries = _FIRST_ROUND if slot else 1  # where nothing is occupied, the first one is free
        while len(unplaced) and first < spec.max_tries:
            numbers = np.arange(first, min(first + tries, spec.max_tries), dtype=np.uint32)
            still = (of_slot[0][unplaced, None], of_slot[1][unplaced, None])
            spots[:, unplaced] = occupied.first_free(going[unplaced], still, numbers)
            unplaced = unplaced[spots[3, unplaced] == 0]
            first, tries = first + tries, 2 * tries
        places[:, going, slot] = spots[:3] * spots[3]
        complete[going] = spots[3] != 0
        if slot + 1 < slots:
            marked = np.flatnonzero(complete[going[: np.searchsorted(going, going_on[slot + 1])]])
            occupied.add(going[marked], images, glyphs[going[marked], slot], *spots[:3, marked])
            occupied.join(going_on[slot + 1])
    # A scene that found no room keeps what it has; the next attempt replaces all of it.
    back = torch.argsort(order)
    return torch.from_numpy(places)[:, back], torch.from_numpy(complete)[back]


class _Occupied:
    """The non-zero pixels of a batch of square pictures as bits, and the question whether a box is free of them.

    A picture row is a few 64-bit words. For every row the OR of the 2^level rows from it on is kept, so any box is two
    lookups.
    """

    def __init__(self, batch: int, spec: SceneSpec) -> None:
        self.size, self.extents = spec.size, spec.extents
        words = -(-spec.size // _WORD)
        self._lowest = (spec.extents[0] >> FRACTION_BITS).bit_length() - 1
        self._rows = np.zeros((words, batch, spec.size), np.uint64)
        self._joined = np.zeros((words, spec.size.bit_length() - self._lowest, batch, spec.size), np.uint64)
        # By side of a box: how many rows of a picture come before its level, and how far down its second entry lies.
        levels = [max(side.bit_length() - 1, self._lowest) for side in range(spec.size + 1)]
        self._level_start = np.array([(level - self._lowest) * spec.size for level in levels])
        self._second_half = np.array([side - (1 << level) for side, level in enumerate(levels)])
        # (words, size + 1): the columns 0 … x − 1 of a picture as bits, for each x.
        edges = [[min(max(x - _WORD * word, 0), _WORD) for x in range(spec.size + 1)] for word in range(words)]
        self._left_of = np.array([[(1 << edge) - 1 for edge in row] for row in edges], np.uint64)

    def first_free(self, pictures: Array, draws: Lanes, numbers: Array) -> Array:
        """extent, x, y (n,) of the first of the tries ``numbers`` (t,) that is free, and whether there is one.

        ``pictures`` (n,) are asked about, with ``draws`` of lanes (n, 1).
        """
        low, high = self.extents
        for_scale, for_place = _absorb(draws, numbers)  # (n, t) each
        extent = low + ((for_scale.astype(np.int64) * (high - low)) >> 32)
        side = extent >> FRACTION_BITS
        room = self.size + 1 - side
        product = for_place.astype(np.int64) * room
        x, y = product >> 32, ((product & 0xFFFFFFFF) * room) >> 32
        upper = self._level_start.take(side) * self._rows.shape[1] + pictures[:, None] * self.size + y
        lower = upper + self._second_half.take(side)
        right = x + side
        taken = np.zeros(x.shape, np.uint64)
        for joined, left_of in zip(self._joined, self._left_of):
            met = joined.reshape(-1).take(upper)
            met |= joined.reshape(-1).take(lower)
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
        words = len(self._rows)
        packed = np.zeros((int(side.sum()), 8 * words), np.uint8)  # every row of every glyph, bits in bytes
        for size, start, stop in runs(side):
            ink = resized_alike(images.take(glyph[start:stop], axis=0), size) >= HALF  # (k, size, size)
            bits = np.packbits(ink, axis=-1, bitorder="little").reshape(size * (stop - start), -1)
            last = int(ends[stop - 1])
            packed[last - len(bits) : last, : bits.shape[1]] = bits
        rows = packed.view("<u8").astype(np.uint64, copy=False)  # (r, words)
        # Where each row goes, and how far to the right.
        target = np.arange(len(rows)) + np.repeat(pictures[order] * self.size + y[order] - ends + side, side)
        shift = np.repeat(x[order].astype(np.uint64), side)
        whole, part = shift >> np.uint64(6), shift & np.uint64(63)
        back = np.uint64(63) - part  # and one more: a shift by 64 at once would have no effect
        for word in range(words):
            for source in range(word + 1):
                moved = rows[:, source] << part
                if source:
                    moved |= (rows[:, source - 1] >> back) >> np.uint64(1)
                is_here = whole == np.uint64(word - source)
                self._rows[word].reshape(-1)[target] |= np.where(is_here, moved, np.uint64(0))

    def join(self, pictures: int) -> None:
        """Make what was marked in the first ``pictures`` visible to :meth:`first_free`."""
        for start in range(0, pictures, _CACHED):
            part = slice(start, min(start + _CACHED, pictures))
            joined = self._rows[:, part]
            if self._lowest == 0:
                self._joined[:, 0, part] = joined
            for level in range(1, self._lowest + self._joined.shape[1]):
                reach = 1 << (level - 1)
                target = self._joined[:, max(level - self._lowest, 0), part]
                # Boxes lie inside the picture, so nobody asks for rows that reach below it.
                np.bitwise_or(joined[..., :-reach], joined[..., reach:], out=target[..., :-reach])
                joined = target


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
