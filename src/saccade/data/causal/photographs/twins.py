"""Twins of a photograph: an object removed or moved, another ground, and a patch of ground that is filled in again.

A hole is what is marked, grown by 3 % of the longest side, less what is marked of others: so removing one object does
not eat into one that touches it. Pasted objects fade out inside their edge, so they bring no ground along. Where things
are placed is drawn by counter (:mod:`saccade.data.scenes.hashing`) from the seed and the name of the photograph.

Axes: H and W pixels of a photograph, h and w of the box of an object.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter, ImageOps

from saccade.data.causal.photographs.filling import Fill, grown, growth
from saccade.data.causal.photographs.marking import Marked, UnusablePictureError
from saccade.data.causal.row_folder import Masks, Pixels
from saccade.data.scenes.hashing import hash_u32

PATCHES = 2  # Patches of ground that are filled in, at most
SCALES = (1.0, 0.7, 0.5)  # of a patch, along each side: the first at which there is a place
OVERLAPS = (0.0, 0.25, 0.5)  # Share of a moved object that lies on its old place: the first at which there is a place
FEATHER = 0.003  # of the longest side: the blur of a pasted edge
_MOVED, _PATCH = 0, 1  # Counters of draws
PixelBox = tuple[int, int, int, int]
Alpha = npt.NDArray[np.float64]
Grid = TypeVar("Grid", bound=npt.NDArray[Any])


class Twin(NamedTuple):
    """One twin; see :mod:`saccade.data.causal.photographs.format`."""

    change: str
    pixels: Pixels  # (H,W,3)
    labels: Pixels  # (H,W)
    changed: Masks  # (H,W)
    object: int | None = None
    box: PixelBox | None = None
    ground: str | None = None
    scale: float | None = None


class Twins(NamedTuple):
    """The twins of a photograph by name, and which could not be made."""

    by_name: dict[str, Twin]
    left_out: tuple[str, ...]


Ground = tuple[str, Pixels] | None  # Another photograph without its objects: name and picture


def hole_of(photograph: Marked, mask: Masks) -> Masks:
    """What is replaced where ``mask`` (H,W) is removed."""
    hole: Masks = grown(mask, growth(mask.shape)) & (mask | (photograph.labels == 0))
    if hole.all():
        raise UnusablePictureError("nothing left to fill in from")
    return hole


def twins_of(photograph: Marked, fill: Fill, ground: Ground, seed: int, patches: int = PATCHES) -> Twins:
    """The twins of a photograph; ``ground`` goes behind its objects in one, ``patches`` are filled in at most."""
    pixels, labels, target = photograph.pixels, photograph.labels, photograph.target
    draw = drawer(seed, photograph.name)
    twins: dict[str, Twin] = {}
    left_out: list[str] = []
    for number in range(len(photograph.names)):
        mask = labels == number + 1
        hole = hole_of(photograph, mask)
        twins[f"removed-{number}"] = Twin("removed", fill(pixels, hole), np.where(mask, 0, labels), hole, number)
    mask, without = labels == target + 1, twins[f"removed-{target}"]
    if place := _new_place(mask, without.labels > 0, draw(_MOVED)):
        there, alpha = shifted(mask, *place), shifted(feathered(mask), *place)
        moved = laid_over(without.pixels, shifted(pixels, *place), alpha)
        new_labels = np.where(there, np.uint8(target + 1), without.labels)
        twins["moved"] = Twin("moved", moved, new_labels, without.changed | there, target, box_of(there))
    else:
        left_out.append("moved: no free place for the target")
    if ground is not None:
        name, behind = ground
        alpha = feathered(labels > 0)
        fitted = np.array(ImageOps.fit(Image.fromarray(behind), (labels.shape[1], labels.shape[0])))
        twins["background"] = Twin("background", laid_over(fitted, pixels, alpha), labels, alpha < 1, ground=name)
    else:
        left_out.append("background: no other photograph with a ground")
    near = grown(labels > 0, growth(labels.shape))
    for number in range(patches):
        placed = _patch(mask, near, draw(_PATCH + number))
        if placed is None:
            left_out.append("empty: no free place for a patch of the target's shape")
            break
        patch, scale = placed
        hole = hole_of(photograph, patch)
        filled = fill(pixels, hole)
        twins[f"empty-{number}"] = Twin("empty", filled, labels, hole, box=box_of(patch), scale=scale)
        near |= patch
    return Twins(twins, tuple(left_out))


def drawer(seed: int, name: str) -> Callable[[int], int]:
    """Draws in [0, 2³²) by counter, from the seed and the name of a photograph."""
    key = int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[:7])
    return lambda counter: int(hash_u32(seed, key, counter))


def box_of(mask: Masks) -> PixelBox:
    """x0 y0 x1 y1 around ``mask``, right and lower edge excluded."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def met(shape: Masks, taken: Masks) -> Alpha:
    """How many ``taken`` pixels (H,W) a shape (h,w) meets at each place of its corner (H-h+1,W-w+1), by correlation."""
    (height, width), (rows, columns) = taken.shape, shape.shape
    spectrum = np.fft.rfft2(taken.astype(np.float64)) * np.fft.rfft2(shape.astype(np.float64), taken.shape).conj()
    return np.rint(np.fft.irfft2(spectrum, taken.shape)[: height - rows + 1, : width - columns + 1])


def drawn_place(free: Masks, bits: int) -> tuple[int, int] | None:
    """Row and column of one of the places that are ``free``; None where none is."""
    rows, columns = free.nonzero()
    at = pick(bits, len(rows))
    return (int(rows[at]), int(columns[at])) if len(rows) else None


def pick(bits: int, bound: int) -> int:
    """A number in [0, bound) from 32 random bits."""
    return bits * bound >> 32


def _new_place(mask: Masks, others: Masks, bits: int) -> tuple[int, int] | None:
    """By how many rows and columns an object is moved.

    It stays at a border that cuts it off. Where there is no place beside its old one, up to half of it lies there.
    """
    x0, y0, x1, y1 = box_of(mask)
    shape = mask[y0:y1, x0:x1]
    free, own = met(shape, others) == 0, met(shape, mask)
    if y0 == 0 or y1 == len(mask):
        free[np.arange(len(free)) != y0] = False
    if x0 == 0 or x1 == mask.shape[1]:
        free[:, np.arange(free.shape[1]) != x0] = False
    for overlap in OVERLAPS:
        if place := drawn_place(free & (own <= overlap * mask.sum()), bits):
            return place[0] - y0, place[1] - x0
    return None


def _patch(mask: Masks, taken: Masks, bits: int) -> tuple[Masks, float] | None:
    """The shape of ``mask`` (H,W) at a place where nothing is ``taken``, and the scale at which there is one."""
    x0, y0, x1, y1 = box_of(mask)
    for scale in SCALES:
        size = max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale))
        shape = np.array(Image.fromarray(mask[y0:y1, x0:x1]).resize(size, Image.Resampling.NEAREST))
        if shape.any() and (place := drawn_place(met(shape, taken) == 0, bits)):
            patch = np.zeros_like(mask)
            patch[place[0] : place[0] + size[1], place[1] : place[1] + size[0]] = shape
            return patch, scale
    return None


def shifted(values: Grid, rows: int, columns: int) -> Grid:
    """``values`` (H,W,…) moved down and right; what comes in is 0."""
    out = cast(Grid, np.zeros_like(values))
    height, width = values.shape[:2]
    target = np.s_[max(rows, 0) : height + min(rows, 0), max(columns, 0) : width + min(columns, 0)]
    source = np.s_[max(-rows, 0) : height + min(-rows, 0), max(-columns, 0) : width + min(-columns, 0)]
    out[target] = values[source]
    return out


def feathered(mask: Masks) -> Alpha:
    """How much of what lies in ``mask`` is pasted (H,W): 0 outside, rising inside its edge to 1."""
    radius = max(0.7, FEATHER * max(mask.shape))
    soft = Image.fromarray(mask.astype(np.uint8) * np.uint8(255)).filter(ImageFilter.GaussianBlur(radius))
    return np.clip(np.asarray(soft) / 127.5 - 1, 0, 1) * mask


def laid_over(below: Pixels, above: Pixels, alpha: Alpha) -> Pixels:
    """``above`` (H,W,3) pasted on ``below`` by ``alpha`` (H,W)."""
    weight = alpha[..., None]
    return np.rint(below * (1 - weight) + above * weight).astype(np.uint8)
