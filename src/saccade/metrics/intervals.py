"""Scores of many examples, kept batch by batch, with 95 % confidence intervals that count pictures.

Examples that share a picture (several questions about one scene) are not independent, so the unit is the picture with
everything that was asked about it. One rule serves a mean of values and a score of a whole set, such as macro-F1:

1. *Spread.* Each of the G pictures is left out once (jackknife, Efron and Tibshirani 1993). With the score θ and the
   score θ₍₋g₎ without picture g, the contributions r_g = (G − 1)(θ − θ₍₋g₎) have a variance V.
2. *How many pictures it is worth.* A score between 0 and 1 has at most the variance θ(1 − θ), where every picture is
   wholly right or wholly wrong. It is worth n = G · [G θ(1 − θ) + 1] / [G V + 1] such pictures. The 1 on both sides is
   one further picture that is wholly wrong; without it a perfect score would have no spread.
3. *The interval* is that of Agresti and Coull (1998) for a share θ of n trials: z² trials are added, half of them
   right. It always has a width and never leaves 0 .. 1.

A score with other ends is brought to 0 .. 1 first. A score without ends (a distance) has θ ± t √(V / G), with Student's
t of G − 1 degrees of freedom. NaN means that an example has no such score: it is left out of the mean and counted in
``undefined``.

Limits: a small set in which pictures with many questions score unlike those with few is biased, and so is macro-F1 with
many rare classes. Few pictures with close scores away from 0 and 1 get a wider interval than needed, by step 2. With a
long tail, the interval of a score without ends is too narrow.

**Several splits of one set of pictures** (:func:`resplit_interval`) share most of their training pictures, so the usual
interval of a mean is too narrow. Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52,
2003, correct it: with J splits, each with n₁ pictures to learn from and n₂ to be tested on, and variance s² of scores,

    Var(mean) ≈ (1/J + n₂/n₁) s²,    interval: mean ± t(J − 1) √Var

where s² is at least (1/n₂)² / J, as if one picture of one split were answered otherwise: splits may agree by chance.

Axes: N values, G pictures, J splits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import DataError, check_alike

Ends = tuple[float, float] | None
"""The lowest and the highest value that a score can have; None: it has none."""
SHARE = (0.0, 1.0)
_LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + _LEVEL) / 2)


class Interval(NamedTuple):
    """A score with its confidence interval."""

    mean: float
    """NaN if no value is defined."""
    low: float
    """NaN, like ``high``, with fewer than two images."""
    high: float
    n: int
    """Defined values."""
    images: int
    """Inputs (pictures or stories) with at least one defined value."""
    undefined: int
    """Values that were NaN and do not count."""

    def __str__(self) -> str:
        """Mean, interval, and counts.

        >>> print(Interval(0.634007, 0.580894, 0.688787, n=300, images=100, undefined=2))
        0.634 (0.581–0.689), n 300 from 100 inputs, 2 undefined
        """
        spread = "" if self.low != self.low else f" ({self.low:.3f}–{self.high:.3f})"
        inputs = "" if self.images == self.n else f" from {self.images:,} input{'s' * (self.images != 1)}"
        undefined = f", {self.undefined:,} undefined" if self.undefined else ""
        return f"{self.mean:.3f}{spread}, n {self.n:,}{inputs}{undefined}"


def mean_defined(values: Tensor) -> float:
    """The mean of the values (N,) that are not NaN; NaN if there is none."""
    values = _wide(values)
    return float(values[~values.isnan()].mean())


def mean_interval(values: Tensor, images: Tensor | None = None, *, ends: Ends = SHARE) -> Interval:
    """The mean of ``values`` with its interval, see the module.

    >>> print(mean_interval(torch.ones(200)))
    1.000 (0.977–1.000), n 200
    >>> print(mean_interval(torch.ones(200), torch.arange(200) // 7))
    1.000 (0.861–1.000), n 200 from 29 inputs

    Args:
        values: scores (N,), NaN where undefined.
        images: id of each score's image, (N,) integers; None when every score has an image of its own.
        ends: between which every value lies; None for scores without ends.
    """
    values = _wide(values)
    images = torch.arange(len(values)) if images is None else images.cpu()
    defined = ~values.isnan()
    valid, undefined = values[defined], int((~defined).sum())
    if not len(valid):
        return Interval(float("nan"), float("nan"), float("nan"), 0, 0, undefined)
    pictures, image = torch.unique(images[defined], return_inverse=True)  # (G,), (n,)
    mean = valid.mean()
    counts = torch.bincount(image, minlength=len(pictures)).double()  # (G,)
    # From the mean on, not from 0: sums of equal values then differ by nothing, not by their rounding.
    apart = torch.zeros(len(pictures), dtype=torch.float64).index_add_(0, image, valid - mean)  # (G,)
    without = mean + (apart.sum() - apart) / (counts.sum() - counts)  # (G,)
    if ends is not None:
        slack = 1e-4 * (ends[1] - ends[0])  # how far rounding may lead beyond an end
        if float(valid.min()) < ends[0] - slack or float(valid.max()) > ends[1] + slack:
            raise DataError(
                f"values: found some outside {ends[0]:g} … {ends[1]:g}; give the ends of this score, or None"
            )
    low, high = jackknife_interval(mean, without, ends=ends)
    return Interval(float(mean), float(low), float(high), len(valid), len(pictures), undefined)


def jackknife_interval(score: Tensor, without: Tensor, *, ends: Ends = SHARE) -> tuple[Tensor, Tensor]:
    """Low and high (…) of a ``score`` (…), from the scores ``without`` (…,G) each of its pictures; see the module.

    NaN with fewer than two pictures. A NaN in ``without`` counts as no change.
    """
    pictures = without.shape[-1]
    if pictures < 2:
        nothing = torch.full_like(score, torch.nan)
        return nothing, nothing
    low, high = ends or SHARE
    apart = (score.unsqueeze(-1) - without).nan_to_num(0.0) / (high - low)  # (…,G)
    variance = ((pictures - 1) * apart).var(-1)  # (…): V
    share = (score - low) / (high - low)  # (…): θ
    if ends is None:
        half = t_quantile(pictures - 1) * (variance / pictures).sqrt()
        return score - half, score + half
    share = share.clamp(0, 1)
    worth = pictures * (pictures * share * (1 - share) + 1) / (pictures * variance + 1)  # (…): n
    trials = worth + _Z * _Z
    centre = (worth * share + _Z * _Z / 2) / trials
    half = _Z * (centre * (1 - centre) / trials).sqrt()
    return low + (high - low) * (centre - half).clamp(min=0), low + (high - low) * (centre + half).clamp(max=1)


def paired_difference(first: Tensor, second: Tensor, images: Tensor | None = None) -> Interval:
    """The mean of ``first − second`` of shares on the same examples; a difference if the interval excludes 0.

    Pairs with a NaN are undefined.
    """
    check_alike("second", second, first)
    return mean_interval(_wide(first) - _wide(second), images, ends=(-1.0, 1.0))


def _wide(values: Tensor) -> Tensor:
    return values.detach().cpu().double()


_SUMMED = 200
"""Most degrees of freedom for the sum; beyond, the expansion is right to six digits."""


@lru_cache(maxsize=256)
def t_quantile(freedom: int) -> float:
    """Student's t with P(|T| ≤ t) = 0.95, for ``freedom`` ≥ 1 degrees of freedom.

    Abramowitz and Stegun (1964), eq. 26.7.3 and 26.7.4, solved by bisection; for many degrees eq. 26.7.5.

    >>> round(t_quantile(4), 4)
    2.7764
    """
    if freedom > _SUMMED:
        z = _Z
        return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _share_within(middle, freedom) < _LEVEL else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _share_within(angle: float, freedom: int) -> float:
    """P(|T| ≤ t) for t = √ν tan(angle), eq. 26.7.3 (odd ν) and 26.7.4 (even ν)."""
    is_odd = freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for step in range(freedom // 2):
        total += term
        term *= math.cos(angle) ** 2 * (2 * step + 1 + is_odd) / (2 * step + 2 + is_odd)
    if is_odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


class Resplit(NamedTuple):
    """A mean over splits with its corrected interval."""

    mean: float
    half: float
    """Half the width of the interval; NaN with fewer than two splits."""
    splits: int

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half

    def percent(self, *, signed: bool = False) -> str:
        """The mean of shares in percent, and the interval as far as shares go; ``signed``: of their differences.

        >>> Resplit(0.9, 0.25, 5).percent()
        '90.0 (65.0 to 100.0)'
        >>> Resplit(-0.025, 0.05, 5).percent(signed=True)
        '-2.5 (-7.5 to +2.5)'
        """
        sign, least = ("+", -1.0) if signed else ("", 0.0)
        low, high = max(least, self.low), min(1.0, self.high)
        return f"{100 * self.mean:{sign}.1f} ({100 * low:{sign}.1f} to {100 * high:{sign}.1f})"

    @property
    def is_beyond_zero(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def resplit_interval(scores: Tensor, *, trained: float, tested: float) -> Resplit:
    """The mean of ``scores`` (J,) of J splits, with its interval; to compare, give differences split by split.

    >>> interval = resplit_interval(torch.tensor([0.70, 0.72, 0.74, 0.76, 0.78]), trained=60, tested=20)
    >>> round(interval.mean, 4), round(interval.half, 4)
    (0.74, 0.0641)

    Args:
        scores: one for each split; of several seeds their mean.
        trained: pictures that each split learns from, n₁; their mean where it differs.
        tested: pictures that each split is tested on, n₂.
    """
    values = _wide(scores)
    splits, mean = len(values), float(values.mean())
    if splits < 2:
        return Resplit(mean, math.nan, splits)
    variance = max(float(values.var()), tested**-2 / splits)  # s²
    half = t_quantile(splits - 1) * math.sqrt((1 / splits + tested / trained) * variance)
    return Resplit(mean, half, splits)


_NO_SHARES = ("distance", "nss", "map_follow", "map_turn")
"""Scores without ends, like those whose names end in ``_raw``."""


class ColumnBuffer:
    """Tensors by name, example axis first."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Tensor]] = {}

    def append(self, **columns: Tensor) -> None:
        """Add tensors of a batch; views are copied, as they keep their base in memory."""
        for name, part in columns.items():
            is_view = part.untyped_storage().nbytes() > part.numel() * part.element_size()
            self._parts.setdefault(name, []).append(part.detach().clone() if is_view else part.detach())

    def join(self, later: ColumnBuffer) -> None:
        """Append other columns."""
        for name, parts in later._parts.items():
            self._parts.setdefault(name, []).extend(parts)

    @property
    def names(self) -> tuple[str, ...]:
        """All column names, in order."""
        return tuple(self._parts)

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __getitem__(self, name: str) -> Tensor:
        parts = self._parts[name] = [torch.cat(self._parts[name]).cpu()]  # a GPU is waited for here, and only here
        return parts[0]


class Grouped:
    """Measurements of examples, with the picture of each."""

    def __init__(self) -> None:
        self._columns = ColumnBuffer()

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def groups(self) -> Tensor:
        """The picture of each example (N,)."""
        return self._columns["group"] if "group" in self._columns else torch.zeros(0, dtype=torch.int64)


class Values(ColumnBuffer):
    """Columns of scores (N,) in float64, NaN where undefined."""

    def add_values(self, values: Mapping[str, Tensor]) -> None:
        """Add values (B,) of a batch by name."""
        self.append(**{name: part.detach().double() for name, part in values.items()})

    def values(self) -> dict[str, Tensor]:
        """All values (N,) by name."""
        return {name: self[name] for name in self.names}

    def means(self) -> dict[str, float]:
        """The means of the defined values; NaN if there are none."""
        return {name: mean_defined(values) for name, values in self.values().items()}

    def intervals(self, groups: Tensor) -> dict[str, Interval]:
        """Each mean with its interval; the unit is the group (N,), the id of each example's picture.

        Columns with fewer values are about the first examples.
        """
        return {
            name: mean_interval(
                values, groups[: len(values)], ends=None if name in _NO_SHARES or name.endswith("_raw") else SHARE
            )
            for name, values in self.values().items()
        }


class ByName(dict[str, Values]):
    """Values by the name of a look or rival."""

    def add_values(self, name: str, values: Mapping[str, Tensor]) -> None:
        """Add values (B,) of a batch."""
        self.setdefault(name, Values()).add_values(values)

    def join(self, later: ByName) -> None:
        """Append later values."""
        for name, values in later.items():
            self.setdefault(name, Values()).join(values)

    def means(self) -> dict[str, dict[str, float]]:
        """The means by name; NaN if none is defined."""
        return {name: values.means() for name, values in self.items()}
