"""How maps lie on masks: where the attention is, how much of it, and how it ranks the pixels.

A map is (B,H,W), finite and ≥ 0; evidence is (B,H,W) bool. Axes: B pictures, N objects, H and W pixels.

**Shares.** A map is divided by its sum; a map of zeros has no shares, so what is asked of it is NaN.

=========  ====================================  =======================
Eq. (M1)   m_o = Σ_{x in o} a(x) / Σ_x a(x)      :func:`mass_on`
Eq. (M2)   TV(a, b) = ½ Σ_x |a(x)/Σa − b(x)/Σb|  :func:`total_variation`
=========  ====================================  =======================

**Scores** are (B,) in 0..1, higher is better, and do not change when a map is multiplied by a positive number. A map of
zeros points nowhere, so silence never pays; a picture without evidence has no right place, so it is undefined.

=====================  ======================  ===========  =======================  =======================
map or mask            true_positive_strength  selectivity  pointing                 iou
=====================  ======================  ===========  =======================  =======================
equals the evidence    1                       1            1                        1
constant               area of the evidence    area share   area of the evidence     area of the evidence
zero everywhere        0                       0            0                        0
evidence is empty      NaN                     NaN          NaN                      NaN
NaN, ±inf, negative    DataError that names the picture
=====================  ======================  ===========  =======================  =======================

**Precision and recall.** Each map is divided by its maximum and the pixels of all pictures go into one ranking. The
area is average precision, Σ ΔR·P, with tied pixels taken together. Pixels are counted on a fixed grid of thresholds, so
that counts add up in constant memory: 1,024 to each halving of the value down to 2⁻¹²⁶ of the peak, since in products
of gates many pixels lie below a millionth of the peak, and their order counts too. A picture without evidence is left
out and counted in ``undefined``; a map of zeros stays in, with all its pixels tied at the bottom.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError, check_alike

LEVEL_BITS = 10  # thresholds per halving of the value: 2^10
LEVELS = (127 << LEVEL_BITS) + 1  # codes of 0 … 1: the exponent of a float32 is stored plus 127
"""Thresholds for precision and recall: 130,049. The lowest is zero."""


def check_maps(maps: Tensor) -> Tensor:
    """The maps (B,H,W) in float32 or float64; an error if they are not finite and ≥ 0."""
    if maps.dim() != 3 or maps.shape[1] * maps.shape[2] == 0:
        raise ShapeError("maps", "(B,H,W) with at least one pixel", maps.shape)
    if maps.dtype not in (torch.float32, torch.float64):
        maps = maps.float()  # half precision cannot sum ten thousand pixels
    low, high = maps.aminmax() if len(maps) else (0.0, 0.0)
    if low >= 0 and high < math.inf:  # one pass instead of four; NaN is neither
        return maps
    for broken, what, cure in (
        (~maps.isfinite(), "holds NaN or infinity", "look for a division by zero in what made it"),
        (maps < 0, "is negative somewhere", "clamp it or take its absolute value, and say which"),
    ):
        pictures = broken.flatten(1).any(1)  # (B,)
        if bool(pictures.any()):
            index = int(pictures.nonzero()[0, 0])
            total = int(pictures.sum())
            raise DataError(f"the map of picture {index} {what} ({total} of {len(maps)} pictures): {cure}")
    return maps


def scale_to_peak(maps: Tensor) -> Tensor:
    """Each map divided by its maximum; a map of zeros stays."""
    peak = maps.amax(dim=(-2, -1), keepdim=True)  # (B,1,1)
    return maps / torch.where(peak > 0, peak, torch.ones_like(peak))


def quantise(values: Tensor, bits: int) -> Tensor:
    """Non-negative numbers as int32 in the same order, equal where they agree to about ``bits`` binary digits.

    The bit pattern of a non-negative float32 sorts like the number. Rounding its last digits away merges values that
    differ only by the rounding of a projection.
    """
    drop = 23 - bits  # a float32 has 23 binary digits
    pattern = values.abs().float().contiguous().view(torch.int32)  # abs: -0.0 has the sign bit set
    return (pattern + (1 << (drop - 1))) >> drop


def where_defined(scores: Tensor, defined: Tensor) -> Tensor:
    """Scores (B,), NaN where ``defined`` (B,) is False."""
    return torch.where(defined, scores, torch.full_like(scores, torch.nan))


def shares(maps: Tensor) -> Tensor:
    """The maps (B,H,W) divided by their sums; NaN everywhere in a map of zeros.

    >>> shares(torch.tensor([[[1.0, 3.0]]])).tolist()
    [[[0.25, 0.75]]]
    """
    maps = check_maps(maps)
    return maps / maps.sum(dim=(-2, -1), keepdim=True)  # 0 / 0 is NaN


def mass_on(maps: Tensor, masks: Tensor) -> Tensor:
    """The share of each map on a mask, Eq. (M1): (B,) of masks (B,H,W), (B,N) of the masks (B,N,H,W) of N objects.

    Args:
        maps: (B,H,W), finite and nowhere negative.
        masks: bool, on the same pixels.
    """
    weights = shares(maps).flatten(1)  # (B,P)
    return torch.einsum("b...p,bp->b...", masks.flatten(-2).to(weights), weights)


def total_variation(one: Tensor, other: Tensor) -> Tensor:
    """Eq. (M2): how far two maps (B,H,W) of each picture are apart, 0 … 1; NaN where either is all zeros.

    ``one`` may be a single map (1,H,W), which all others are compared with.

    >>> total_variation(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[1.0, 3.0]]])).tolist()
    [0.75]
    """
    check_alike("other", other, one.expand(len(other), -1, -1) if len(one) == 1 else one)
    return 0.5 * (shares(one) - shares(other)).abs().sum(dim=(-2, -1))


TIE = 1e-5
"""Pixels within this share of the maximum are tied with it, as projection rounds to float32."""
_MAPS_AT_ONCE = 32  # of 100×100 pixels they fit into the second cache of a CPU


def true_positive_strength(maps: Tensor, evidence: Tensor) -> Tensor:
    """The share of all attention on the evidence, Σ(a·mask) / Σa, for each picture (B,)."""
    return CheckedMaps(maps, Region(evidence.to(maps.device))).true_positive_strength()


def selectivity(maps: Tensor, target: Tensor, objects: Tensor) -> Tensor:
    """Attention on the target (B,H,W) bool ÷ attention on all objects (B,H,W) bool, for each picture (B,).

    The background does not count. A map that misses every object scores 0.
    """
    target = target.to(maps.device)
    return CheckedMaps(maps, Region(target)).selectivity(Region(objects.to(maps.device) | target))


def pointing(maps: Tensor, evidence: Tensor) -> Tensor:
    """Whether the maximum of each map lies inside the evidence (B,); of tied maxima, the fraction that does.

    So a constant map scores the area of the evidence, whatever the order of the pixels.
    """
    return CheckedMaps(maps, Region(evidence.to(maps.device))).pointing()


def iou(maps: Tensor, evidence: Tensor) -> Tensor:
    """Intersection over union of the evidence with the pixels at or above half the map's maximum (B,)."""
    return CheckedMaps(maps, Region(evidence.to(maps.device))).iou()


class Region:
    """The pixels of masks (B,H,W) bool as a list, so that sums touch no other pixel."""

    def __init__(self, mask: Tensor) -> None:
        if mask.dtype != torch.bool:
            raise DataError(f"evidence: expected a bool mask, found {mask.dtype}; compare it with a threshold first")
        self.mask = mask
        self.at = mask.flatten().nonzero().squeeze(1)  # (M,): picture · H·W + pixel
        self.pixels = mask.shape[1] * mask.shape[2]
        self.picture = self.at // self.pixels  # (M,)
        self.area = torch.bincount(self.picture, minlength=len(mask))  # (B,)

    def of(self, maps: Tensor, rows: Tensor | None = None) -> Tensor:
        """The values (M,) of maps (K,H,W) at these pixels; ``rows`` (B,): the map of each picture; None: its own."""
        at = self.at
        if rows is not None:
            at = at + ((rows - torch.arange(len(rows), device=rows.device)) * self.pixels)[self.picture]
        return maps.reshape(-1).index_select(0, at)

    def sums(self, values: Tensor) -> Tensor:
        """The sum (B,) in float64 of values (M,) over the pixels of each picture."""
        return torch.segment_reduce(values.double(), "sum", lengths=self.area, unsafe=True)


class MeasuredMaps:
    """Maps (K,H,W), checked, with what scores need of each map alone; compared with any evidence."""

    def __init__(self, maps: Tensor) -> None:
        self.maps = check_maps(maps)
        peak = self.maps.amax(dim=(-2, -1))  # (K,)
        self.peak = torch.where(peak > 0, peak, torch.ones_like(peak))  # a map of zeros stays as it is
        parts = []
        for flat, top in self._parts():
            scaled = flat / top[:, None]  # (k,P)
            tied, half = ((scaled >= share).sum(1, dtype=torch.int32) for share in (1 - TIE, 0.5))  # (k,) each
            total = scaled.sum(1, dtype=torch.float64)  # (k,): as exact as sums over evidence: no share exceeds 1
            parts.append(torch.stack([total, tied.double(), half.double()]))  # (3,k)
        self.total, self.tied, self.half = torch.cat(parts, dim=1)  # (K,) each
        """Sum of each map divided by its peak; how many pixels are tied with the peak, and reach half of it."""

    def _parts(self, *more: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """A few maps (k,P) at a time with their peaks (k,), so that they stay in a CPU's cache."""
        few = max(1, len(self.maps)) if self.maps.device.type != "cpu" else _MAPS_AT_ONCE
        return zip(*(torch.split(tensor, few) for tensor in (self.maps.flatten(1), self.peak, *more)))

    @cached_property
    def levels(self) -> Tensor:
        """The pixels of all maps at each threshold level, (LEVELS,) int64."""
        return self._levels(None)

    def levels_of(self, times: Tensor) -> Tensor:
        """The same where each map counts ``times`` (K,) int64."""
        least, most = times.aminmax() if len(times) else (0, 0)
        return self.levels * most if least == most else self._levels(times)

    def _levels(self, times: Tensor | None) -> Tensor:
        counts = torch.zeros(LEVELS, dtype=torch.int64, device=self.maps.device)
        for flat, peak, *weights in self._parts() if times is None else self._parts(times.double()):
            levels = quantise(flat / peak[:, None], LEVEL_BITS)  # (k,P)
            weight = weights[0][:, None].expand(levels.shape).flatten() if weights else None
            counts += torch.bincount(levels.flatten(), weights=weight, minlength=LEVELS).long()
        return counts


class CheckedMaps:
    """Maps against evidence: the functions above as methods.

    Args:
        maps: (B,H,W), or (K,H,W) with ``rows``.
        target: the evidence of B pictures.
        rows: (B,) the map of each picture; None: its own.
    """

    def __init__(self, maps: Tensor | MeasuredMaps, target: Region, rows: Tensor | None = None) -> None:
        self.measured = maps if isinstance(maps, MeasuredMaps) else MeasuredMaps(maps)
        self.target, self.rows = target, rows
        maps = self.measured.maps
        shape = maps.shape if rows is None else (len(rows), *maps.shape[1:])
        if target.mask.shape != shape:
            raise ShapeError("evidence", f"{tuple(shape)} as the maps", target.mask.shape)
        self._values = target.of(maps, rows)  # (M,)
        self._scaled = self._values / self._per_picture(self.measured.peak)[target.picture]  # (M,)

    def true_positive_strength(self) -> Tensor:
        """(B,)."""
        total = self._per_picture(self.measured.total).clamp(min=1)  # (B,) at least the peak of 1; only zeros change
        return self._defined(self.target.sums(self._scaled) / total)

    def selectivity(self, objects: Region) -> Tensor:
        """(B,); ``objects`` include the target's pixels."""
        values = objects.of(self.measured.maps, self.rows)  # (M,)
        peak = values.new_zeros(len(objects.area)).scatter_reduce(0, objects.picture, values, "amax")  # (B,)
        peak = torch.where(peak > 0, peak, torch.ones_like(peak))  # on objects, so that what is faint counts too
        total = objects.sums(values / peak[objects.picture]).clamp(min=1)  # (B,) clamps only what attends no object
        return self._defined(self.target.sums(self._values / peak[self.target.picture]) / total)

    def pointing(self) -> Tensor:
        """(B,)."""
        inside = self.target.sums(self._scaled >= 1 - TIE)  # (B,)
        return self._defined(inside / self._per_picture(self.measured.tied).clamp(min=1))  # nothing for a map of zeros

    def iou(self) -> Tensor:
        """(B,)."""
        inside = self.target.sums(self._scaled >= 0.5)  # (B,)
        union = self._per_picture(self.measured.half) + self.target.area - inside  # (B,)
        return self._defined(inside / union.clamp(min=1))

    def pr_counts(self) -> PrCounts:
        """Pixels of the pictures with evidence, by threshold level."""
        exists = self.target.area > 0  # (B,)
        positives = torch.bincount(quantise(self._scaled, LEVEL_BITS), minlength=LEVELS)  # (LEVELS,)
        maps = len(self.measured.maps)
        uses = exists.long() if self.rows is None else torch.bincount(self.rows[exists], minlength=maps)  # (K,)
        pictures = int(exists.sum())
        negatives = self.measured.levels_of(uses) - positives
        return PrCounts(positives, negatives, pictures, len(exists) - pictures)

    def _per_picture(self, facts: Tensor) -> Tensor:
        """Facts of the maps (K,), for each picture (B,)."""
        return facts if self.rows is None else facts[self.rows]

    def _defined(self, scores: Tensor) -> Tensor:
        return where_defined(scores.to(self.measured.maps.dtype), self.target.area > 0)


@dataclass(frozen=True)
class PrCounts:
    """Pixels at each threshold level; counts of two sets of pictures can be added."""

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
        """Sparse for travel between processes: most of the 130,049 levels are empty."""
        return self.positives.cpu().to_sparse(), self.negatives.cpu().to_sparse(), self.pictures, self.undefined

    def __setstate__(self, state: tuple[Tensor, Tensor, int, int]) -> None:
        for name, value in zip(("positives", "negatives", "pictures", "undefined"), state):
            object.__setattr__(self, name, value.to_dense() if isinstance(value, Tensor) else value)

    @property
    def auc(self) -> float:
        """Average precision: Σ ΔR·P over the filled levels, falling; NaN if no picture had evidence."""
        if self.pictures == 0:
            return math.nan
        positives, negatives = self.positives.cpu(), self.negatives.cpu()
        filled = (positives + negatives) > 0
        true = positives[filled].flip(0).cumsum(0).double()  # (K,)
        called = true + negatives[filled].flip(0).cumsum(0).double()  # (K,)
        steps = torch.diff(true / true[-1:].clamp(min=1), prepend=true.new_zeros(1))  # (K,) of recall
        return float((steps * (true / called)).sum())


def pr_counts(maps: Tensor, evidence: Tensor) -> PrCounts:
    """The pixels of maps (B,H,W) at each threshold level."""
    return CheckedMaps(maps, Region(evidence.to(maps.device))).pr_counts()
