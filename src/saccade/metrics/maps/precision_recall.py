"""Precision and recall of maps as detectors of evidence pixels, pooled over pictures.

Each map is divided by its own maximum, then the pixels of all pictures go into one ranking (micro average): sweep a
threshold, call every pixel at or above it "evidence", compare. The area is average precision, Σ ΔR·P, with tied pixels
taken together. Two ways to the same curve:

* :func:`pr_curve` and :func:`pr_auc` sort every pixel: exact, for what fits into memory;
* :func:`pr_counts` counts pixels on a fixed grid of thresholds; counts add up (``+``) over batches and processes in
  constant memory. The grid is geometric, 1,024 thresholds to each halving of the value, down to the smallest normal
  number of float32, 2⁻¹²⁶ of the peak. So sharp maps (most pixels far below the peak) are resolved as well as flat
  ones; it amounts to rounding each value to 11 binary digits. Products of gates need all of it: many of their pixels
  lie below a millionth of the peak, and their order counts too.

A picture without evidence has no right ranking: it is left out and counted in ``undefined``. A map of zeros stays in:
all its pixels are tied at the bottom. Without any evidence at all the curve is empty and the area NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.metrics.maps.localisation import CheckedMaps, Target
from saccade.metrics.maps.values import LEVEL_BITS, LEVELS, check_evidence, check_maps, dequantise, scale_to_peak


@dataclass(frozen=True)
class PrCurve:
    """Precision and recall at falling thresholds (recall rises); float64, in main memory."""

    precision: Tensor  # (K,)
    recall: Tensor  # (K,)
    thresholds: Tensor  # (K,) shares of each picture's maximum
    pictures: int
    """Pictures that were counted."""
    undefined: int
    """Pictures without evidence, left out."""

    @property
    def auc(self) -> float:
        """Average precision; NaN when no picture had evidence."""
        if self.pictures == 0:
            return float("nan")
        steps = torch.diff(self.recall, prepend=self.recall.new_zeros(1))  # (K,)
        return float((steps * self.precision).sum())


@dataclass(frozen=True)
class PrCounts:
    """Pixels at each level of the fixed grid; add the counts of two sets of pictures to get those of both."""

    positives: Tensor  # (LEVELS,) int64: evidence pixels
    negatives: Tensor  # (LEVELS,) int64: the others
    pictures: int
    undefined: int

    def __add__(self, other: PrCounts) -> PrCounts:
        return PrCounts(
            self.positives.to(other.positives.device) + other.positives,  # on the device of what comes in
            self.negatives.to(other.negatives.device) + other.negatives,
            self.pictures + other.pictures,
            self.undefined + other.undefined,
        )

    def __getstate__(self) -> tuple[Tensor, Tensor, int, int]:
        """As it travels between processes: of 130,049 levels most are empty."""
        return self.positives.cpu().to_sparse(), self.negatives.cpu().to_sparse(), self.pictures, self.undefined

    def __setstate__(self, state: tuple[Tensor, Tensor, int, int]) -> None:
        for name, value in zip(("positives", "negatives", "pictures", "undefined"), state):
            object.__setattr__(self, name, value.to_dense() if isinstance(value, Tensor) else value)

    def curve(self) -> PrCurve:
        """The curve at every level that holds a pixel."""
        values = dequantise(torch.arange(LEVELS, dtype=torch.int32), LEVEL_BITS).double()  # (LEVELS,)
        return _curve(self.positives.cpu(), self.negatives.cpu(), values, self.pictures, self.undefined)

    @property
    def auc(self) -> float:
        """Average precision; NaN when no picture had evidence."""
        return self.curve().auc


def no_counts() -> PrCounts:
    """The counts of no pictures: where a sum over batches starts."""
    zeros = torch.zeros(LEVELS, dtype=torch.int64)
    return PrCounts(zeros, zeros.clone(), 0, 0)


def pr_counts(maps: Tensor, evidence: Tensor) -> PrCounts:
    """Count the pixels of a batch of maps (B,H,W) on the fixed grid of thresholds."""
    maps = check_maps(maps)
    evidence = check_evidence(evidence, maps)
    return pr_counts_of(CheckedMaps(maps, Target(evidence)))


def pr_counts_of(checked: CheckedMaps) -> PrCounts:
    """:func:`pr_counts` of maps that are checked already."""
    target = checked.target
    positives = checked.levels()  # (LEVELS,)
    pictures = len(target.exists) if target.all_exist else int(target.exists.sum())
    return PrCounts(
        positives, checked.measured.levels_of(checked.uses) - positives, pictures, len(target.exists) - pictures
    )


def pr_curve(maps: Tensor, evidence: Tensor) -> PrCurve:
    """The exact curve of maps (B,H,W) against evidence (B,H,W) bool; sorts all pixels at once."""
    maps = check_maps(maps)
    scaled, inside = _with_evidence(maps, check_evidence(evidence, maps))  # (B',H,W)
    thresholds, level = torch.unique(scaled, return_inverse=True)  # rising (K,), (B',H,W)
    positives = torch.bincount(level[inside], minlength=len(thresholds)).cpu()
    negatives = torch.bincount(level[~inside], minlength=len(thresholds)).cpu()
    return _curve(positives, negatives, thresholds.cpu().double(), len(scaled), len(maps) - len(scaled))


def pr_auc(maps: Tensor, evidence: Tensor) -> float:
    """Exact average precision of the pooled pixels; for many pictures add up :func:`pr_counts` instead."""
    return pr_curve(maps, evidence).auc


def _with_evidence(maps: Tensor, evidence: Tensor) -> tuple[Tensor, Tensor]:
    """Scaled maps and masks of the pictures that have evidence."""
    defined = evidence.flatten(1).any(1)  # (B,)
    if not bool(defined.all()):
        maps, evidence = maps[defined], evidence[defined]
    return scale_to_peak(maps), evidence


def _curve(positives: Tensor, negatives: Tensor, values: Tensor, pictures: int, undefined: int) -> PrCurve:
    """From pixel counts at rising values (K,) to precision and recall at falling thresholds."""
    held = (positives + negatives) > 0
    true = positives[held].flip(0).cumsum(0).double()  # (K',)
    called = true + negatives[held].flip(0).cumsum(0).double()  # (K',)
    total = true[-1:].clamp(min=1)  # every counted picture has evidence, so this clamps nothing but the empty curve
    return PrCurve(true / called, true / total, values[held].flip(0), pictures, undefined)
