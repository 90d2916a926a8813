"""Scores one answer's attention against the evidence, beside baselines."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from saccade import geometry
from saccade.metrics.maps.baselines import all_objects_exact, centre_gaussian, uniform
from saccade.metrics.maps.localisation import iou, pointing, selectivity, true_positive_strength
from saccade.trace import AttentionTrace


def scores_of(trace: AttentionTrace, evidence: Tensor, objects: Tensor) -> dict[str, object]:
    """Scores of the total map of one example, beside those of baselines on the same picture.

    Args:
        trace: of one example.
        evidence: (H,W) bool, the pixels that hold the answer.
        objects: (H,W) bool, those of all objects.

    Returns:
        ``attention`` (by metric) and ``baselines`` (by name, then metric), as ``saccade evaluate`` has them; a score
        that is not defined is None.
    """
    size = (evidence.shape[0], evidence.shape[1])
    blind = {**_of_no_picture(size), "all_objects_exact": all_objects_exact(objects[None])}
    maps = torch.cat([trace.image_map("total", size), *blind.values()])  # (1+K,H,W)
    target, all_objects = (mask.expand(len(maps), *size) for mask in (evidence, objects))  # (1+K,H,W)
    found = {
        "true_positive_strength": true_positive_strength(maps, target),
        "pointing": pointing(maps, target),
        "iou": iou(maps, target),
        "selectivity": selectivity(maps, target, all_objects),
    }
    rows = [{metric: _defined(values[row]) for metric, values in found.items()} for row in range(len(maps))]
    return {"attention": rows[0], "baselines": dict(zip(blind, rows[1:]))}


@lru_cache(maxsize=16)
def _of_no_picture(size: geometry.Size) -> dict[str, Tensor]:
    """The baselines (1,H,W) that depend on the picture's size alone."""
    pixels = geometry.identity()
    return {"uniform": uniform(pixels, size, size), "centre_gaussian": centre_gaussian(pixels, size, size)}


def _defined(value: Tensor) -> float | None:
    number = float(value)
    return round(number, 6) if math.isfinite(number) else None
