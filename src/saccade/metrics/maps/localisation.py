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

import torch
from torch import Tensor

from saccade.metrics.maps.values import check_evidence, check_maps, check_mask, scale_to_peak, where_defined

TIE = 1e-5
"""Pixels within this share of the maximum are tied with it: a projected constant map is constant to float32 only."""


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


class Target:
    """Evidence (B,H,W) bool, with what every score of every map needs of it, made once."""

    def __init__(self, evidence: Tensor, name: str = "evidence") -> None:
        self.mask, self.name = check_mask(evidence, name), name
        self.pixels = self.mask.flatten(1).float()  # (B,P)
        self.area = self.pixels.sum(1)  # (B,)
        self.exists = self.area > 0  # (B,)

    def on(self, values: Tensor) -> Tensor:
        """The sum (B,) of values (B,H,W) on the evidence."""
        return torch.linalg.vecdot(values.flatten(1), self.pixels.to(values.dtype))


class CheckedMaps:
    """Maps that are checked and scaled once, for all scores of them: the functions above, by name."""

    def __init__(self, maps: Tensor, target: Target) -> None:
        self.maps, self.target = check_maps(maps), target
        check_evidence(target.mask, self.maps, target.name)
        self.scaled = scale_to_peak(self.maps)  # (B,H,W)

    def true_positive_strength(self) -> Tensor:
        """(B,)."""
        total = self.scaled.sum(dim=(-2, -1)).clamp(min=1)  # (B,) at least its peak of 1; only zeros are clamped
        return where_defined(self.target.on(self.scaled) / total, self.target.exists)

    def selectivity(self, objects: Tensor) -> Tensor:
        """(B,)."""
        objects = check_evidence(objects, self.maps, "objects") | self.target.mask
        on_objects = scale_to_peak(self.maps * objects.to(self.maps.dtype))  # scaled after masking: faint counts too
        total = on_objects.sum(dim=(-2, -1)).clamp(min=1)  # (B,) clamps only where no object is attended
        return where_defined(self.target.on(on_objects) / total, self.target.exists)

    def pointing(self) -> Tensor:
        """(B,)."""
        inside, called = self._above(1 - TIE)  # nothing for a map of zeros
        return where_defined(inside / called.clamp(min=1), self.target.exists)

    def iou(self) -> Tensor:
        """(B,)."""
        inside, called = self._above(0.5)
        union = called + self.target.area.to(called.dtype) - inside  # (B,)
        return where_defined(inside / union.clamp(min=1), self.target.exists)

    def _above(self, threshold: float) -> tuple[Tensor, Tensor]:
        """How many pixels (B,) of the evidence, and how many in all, lie at or above a share of the peak."""
        region = (self.scaled >= threshold).to(self.scaled.dtype)  # (B,H,W)
        return self.target.on(region), region.sum(dim=(-2, -1))
