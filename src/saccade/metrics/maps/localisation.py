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

from saccade.metrics.maps.values import check_evidence, check_maps, scale_to_peak, where_defined

TIE = 1e-5
"""Pixels within this share of the maximum are tied with it: a projected constant map is constant to float32 only."""


def true_positive_strength(maps: Tensor, evidence: Tensor) -> Tensor:
    """The share of all attention that lies on the evidence, Σ(a·mask) / Σa, for each picture (B,)."""
    maps = check_maps(maps)
    evidence = check_evidence(evidence, maps)
    scaled = scale_to_peak(maps)
    on_evidence = (scaled * evidence).sum(dim=(-2, -1))  # (B,)
    total = scaled.sum(dim=(-2, -1)).clamp(min=1)  # (B,) at least its own peak of 1; only a map of zeros is clamped
    return where_defined(on_evidence / total, evidence.flatten(1).any(1))


def selectivity(maps: Tensor, target: Tensor, objects: Tensor) -> Tensor:
    """Attention on the target ÷ attention on all objects, for each picture (B,).

    What lies on the background does not count. A map that misses every object scores 0.

    Args:
        maps: (B,H,W).
        target: pixels of the object that was asked for, (B,H,W) bool.
        objects: pixels of all objects, (B,H,W) bool; the target's own are added if they are missing.
    """
    maps = check_maps(maps)
    target = check_evidence(target, maps, "target")
    objects = check_evidence(objects, maps, "objects") | target
    on_objects = scale_to_peak(maps * objects)  # scaled after masking: faint attention on the objects counts in full
    on_target = (on_objects * target).sum(dim=(-2, -1))  # (B,)
    total = on_objects.sum(dim=(-2, -1)).clamp(min=1)  # (B,) clamps only where no object is attended
    return where_defined(on_target / total, target.flatten(1).any(1))


def pointing(maps: Tensor, evidence: Tensor) -> Tensor:
    """Whether the maximum of each map lies inside the evidence (B,); of tied maxima, the fraction that does.

    With ties shared out, a constant map scores the area of the evidence and cannot win by the order of the pixels.
    """
    maps = check_maps(maps)
    evidence = check_evidence(evidence, maps)
    tied = scale_to_peak(maps) >= 1 - TIE  # (B,H,W); nothing for a map of zeros
    inside = (tied & evidence).sum(dim=(-2, -1)).to(maps.dtype)  # (B,)
    return where_defined(inside / tied.sum(dim=(-2, -1)).clamp(min=1), evidence.flatten(1).any(1))


def iou(maps: Tensor, evidence: Tensor) -> Tensor:
    """Intersection over union of the evidence with the pixels at or above half the map's maximum (B,)."""
    maps = check_maps(maps)
    evidence = check_evidence(evidence, maps)
    region = scale_to_peak(maps) >= 0.5  # (B,H,W)
    intersection = (region & evidence).sum(dim=(-2, -1)).to(maps.dtype)  # (B,)
    union = (region | evidence).sum(dim=(-2, -1))  # (B,)
    return where_defined(intersection / torch.clamp(union, min=1), evidence.flatten(1).any(1))
