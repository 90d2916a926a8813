"""Where the attention of a map lies, compared with where the evidence is: one score per picture.

Maps are (B,H,W) ≥ 0 at picture resolution, evidence is (B,H,W) bool; every score is (B,) in 0..1, higher is better,
and does not change when a map is multiplied by a positive number. What the corner cases score:

=====================  ======================  ===========  =======================  =======================
map or mask            true_positive_strength  selectivity  pointing                 iou
=====================  ======================  ===========  =======================  =======================
equals the evidence    1                       1            1                        1
constant               area of the evidence    area share   area of the evidence     area of the evidence
zero everywhere        0                       0            0                        0
evidence is empty      NaN                     NaN          NaN                      NaN
NaN, ±inf, negative    DataError that names the picture
=====================  ======================  ===========  =======================  =======================

A map of zeros points nowhere, so staying silent never pays; a picture without evidence has no right place to look,
so it is NaN and the aggregates of ``saccade.metrics.intervals`` count it as undefined.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from saccade.errors import ShapeError
from saccade.metrics.maps.values import LEVELS, check_evidence, check_maps, check_mask, level_of, where_defined

TIE = 1e-5
"""Pixels within this share of the maximum are tied with it: a projected constant map is constant to float32 only."""
_MAPS_AT_ONCE = 32  # of 100×100 pixels they fit into the second cache of a CPU


def true_positive_strength(maps: Tensor, evidence: Tensor) -> Tensor:
    """The share of all attention that lies on the evidence, Σ(a·mask) / Σa, for each picture (B,)."""
    return CheckedMaps(maps, _target(maps, evidence)).true_positive_strength()


def selectivity(maps: Tensor, target: Tensor, objects: Tensor) -> Tensor:
    """Attention on the target ÷ attention on all objects, for each picture (B,).

    What lies on the background does not count. A map that misses every object scores 0.

    Args:
        maps: (B,H,W).
        target: pixels of the object that was asked for, (B,H,W) bool.
        objects: pixels of all objects, (B,H,W) bool; the target's own are added if they are missing.
    """
    return CheckedMaps(maps, _target(maps, target, "target")).selectivity(objects)


def pointing(maps: Tensor, evidence: Tensor) -> Tensor:
    """Whether the maximum of each map lies inside the evidence (B,); of tied maxima, the fraction that does.

    With ties shared out, a constant map scores the area of the evidence and cannot win by the order of the pixels.
    """
    return CheckedMaps(maps, _target(maps, evidence)).pointing()


def iou(maps: Tensor, evidence: Tensor) -> Tensor:
    """Intersection over union of the evidence with the pixels at or above half the map's maximum (B,)."""
    return CheckedMaps(maps, _target(maps, evidence)).iou()


def _target(maps: Tensor, evidence: Tensor, name: str = "evidence") -> Target:
    return Target(check_evidence(evidence, check_maps(maps), name), name)


class Region:
    """The pixels of masks (B,H,W) bool as a list: what is summed over them touches no other pixel."""

    def __init__(self, mask: Tensor) -> None:
        flat = mask.flatten()
        self.at = flat.nonzero().squeeze(1)  # (M,): picture · H·W + pixel
        self.pixels = mask.shape[1] * mask.shape[2]
        self.picture = self.at // self.pixels  # (M,)
        self.counts = torch.bincount(self.picture, minlength=len(mask))  # (B,)

    def of(self, maps: Tensor, rows: Tensor | None = None) -> Tensor:
        """The values (M,) of maps (K,H,W) at these pixels; ``rows`` (B,): the map of each picture, None: its own."""
        at = self.at
        if rows is not None:
            at = at + ((rows - torch.arange(len(rows), device=rows.device)) * self.pixels)[self.picture]
        return maps.reshape(-1).index_select(0, at)

    def sums(self, values: Tensor) -> Tensor:
        """The sum (B,) in float64 of values (M,) over the pixels of each picture."""
        return torch.segment_reduce(values.double(), "sum", lengths=self.counts, unsafe=True)

    def peaks(self, values: Tensor) -> Tensor:
        """The largest (B,) of the values (M,) ≥ 0 of each picture; 0 where it has no pixel."""
        start = values.new_zeros(len(self.counts))
        return start.scatter_reduce(0, self.picture, values, "amax")


class Target:
    """Evidence (B,H,W) bool, with what every score of every map needs of it, made once."""

    def __init__(self, evidence: Tensor, name: str = "evidence") -> None:
        self.mask, self.name = check_mask(evidence, name), name
        self.region = Region(self.mask)
        self.area = self.region.counts  # (B,)
        self.exists = self.area > 0  # (B,)

    @cached_property
    def all_exist(self) -> bool:
        """Whether every picture has evidence."""
        return bool(self.exists.all())

    def with_objects(self, objects: Tensor) -> Region:
        """The pixels of all objects (B,H,W) bool; the target's own are added if they are missing."""
        return Region(check_mask(objects, "objects").to(self.mask.device) | self.mask)


class MeasuredMaps:
    """Maps (K,H,W), checked, with what the scores need of each map alone; read once, compared with any evidence."""

    def __init__(self, maps: Tensor) -> None:
        self.maps = check_maps(maps)
        peak = self.maps.amax(dim=(-2, -1)) if len(maps) else self.maps.new_zeros(0)  # (K,)
        self.peak = torch.where(peak > 0, peak, torch.ones_like(peak))  # a map of zeros stays as it is
        parts = [self._measured(*part) for part in self._parts()]
        empty = self.maps.new_zeros(3, 0, dtype=torch.float64)
        self.total, self.tied, self.half = torch.cat([*parts, empty], dim=1)  # (K,) each
        """Sum of each map divided by its peak; how many of its pixels are tied with it, and reach half of it."""

    def _parts(self, *more: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """A few maps (k,P) at a time with their peaks (k,): what is computed of them stays in a CPU's cache."""
        few = max(1, len(self.maps)) if self.maps.device.type != "cpu" else _MAPS_AT_ONCE
        return zip(*(torch.split(each, few) for each in (self.maps.flatten(1), self.peak, *more)))

    @staticmethod
    def _measured(flat: Tensor, peak: Tensor) -> Tensor:
        scaled = flat / peak[:, None]  # (k,P)
        tied, half = ((scaled >= share).sum(1, dtype=torch.int32) for share in (1 - TIE, 0.5))  # (k,) each
        total = scaled.sum(1, dtype=torch.float64)  # (k,): as exact as sums over evidence, so that no share exceeds 1
        return torch.stack([total, tied.double(), half.double()])  # (3,k)

    @cached_property
    def levels(self) -> Tensor:
        """How many pixels of all maps lie at each level of the fixed grid of thresholds, (LEVELS,) int64."""
        return self._levels(None)

    def levels_of(self, times: Tensor) -> Tensor:
        """The same where each map counts ``times`` (K,) int64."""
        least, most = times.aminmax() if len(times) else (0, 0)
        return self.levels * most if least == most else self._levels(times)

    def _levels(self, times: Tensor | None) -> Tensor:
        counts = torch.zeros(LEVELS, dtype=torch.int64, device=self.maps.device)
        for flat, peak, *weights in self._parts() if times is None else self._parts(times.double()):
            levels = level_of(flat / peak[:, None])  # (k,P)
            each = weights[0][:, None].expand(levels.shape).flatten() if weights else None
            counts += torch.bincount(levels.flatten(), weights=each, minlength=LEVELS).long()
        return counts


class CheckedMaps:
    """Maps against evidence: the functions above, by name.

    Args:
        maps: (B,H,W), or (K,H,W) with ``rows``.
        target: the evidence of B pictures.
        rows: (B,) which of the maps is that of each picture; None: each its own.
    """

    def __init__(self, maps: Tensor | MeasuredMaps, target: Target, rows: Tensor | None = None) -> None:
        self.measured = maps if isinstance(maps, MeasuredMaps) else MeasuredMaps(maps)
        self.target, self.rows = target, rows
        found = self.measured.maps
        shape = found.shape if rows is None else (len(rows), *found.shape[1:])
        if target.mask.shape != shape:
            raise ShapeError(target.name, f"{tuple(shape)} as the maps", target.mask.shape)
        self._values = target.region.of(found, rows)  # (M,)
        peak = self._each(self.measured.peak)  # (B,)
        self._scaled = self._values / peak[target.region.picture]  # (M,)

    def true_positive_strength(self) -> Tensor:
        """(B,)."""
        total = self._each(self.measured.total).clamp(min=1)  # (B,) at least its peak of 1; only zeros are clamped
        return self._defined(self.target.region.sums(self._scaled) / total)

    def selectivity(self, objects: Tensor | Region) -> Tensor:
        """(B,)."""
        region = objects if isinstance(objects, Region) else self.target.with_objects(self._on_maps(objects))
        values = region.of(self.measured.maps, self.rows)  # (M,)
        peak = region.peaks(values)  # (B,): scaled by the peak on objects, so that what is faint counts too
        peak = torch.where(peak > 0, peak, torch.ones_like(peak))
        total = region.sums(values / peak[region.picture]).clamp(min=1)  # (B,) clamps only what attends no object
        own = self.target.region
        return self._defined(own.sums(self._values / peak[own.picture]) / total)

    def pointing(self) -> Tensor:
        """(B,)."""
        inside, called = self._above(1 - TIE), self._each(self.measured.tied)  # nothing for a map of zeros
        return self._defined(inside / called.clamp(min=1))

    def iou(self) -> Tensor:
        """(B,)."""
        inside, called = self._above(0.5), self._each(self.measured.half)
        union = called + self.target.area - inside  # (B,)
        return self._defined(inside / union.clamp(min=1))

    def levels(self) -> Tensor:
        """How many pixels of the evidence lie at each level of the fixed grid of thresholds, (LEVELS,) int64."""
        return torch.bincount(level_of(self._scaled), minlength=LEVELS)

    @property
    def uses(self) -> Tensor:
        """How often each map (K,) stands for a picture that has evidence, int64."""
        if self.rows is None:
            return self.target.exists.long()
        return torch.bincount(self.rows[self.target.exists], minlength=len(self.measured.maps))

    def _above(self, share: float) -> Tensor:
        """How many pixels (B,) of the evidence lie at or above a share of the peak."""
        return self.target.region.sums(self._scaled >= share)

    def _each(self, facts: Tensor) -> Tensor:
        """What is known of the maps (K,), for each picture (B,)."""
        return facts if self.rows is None else facts[self.rows]

    def _on_maps(self, objects: Tensor) -> Tensor:
        if check_mask(objects, "objects").shape != self.target.mask.shape:
            raise ShapeError("objects", f"{tuple(self.target.mask.shape)} as the maps", objects.shape)
        return objects

    def _defined(self, scores: Tensor) -> Tensor:
        return where_defined(scores.to(self.measured.maps.dtype), self.target.exists)
