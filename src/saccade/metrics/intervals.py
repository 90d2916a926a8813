"""Confidence intervals of scores: one rule for all of them, the jackknife over pictures.

Examples that share a picture (several questions about one scene) are not independent, so the unit is the picture with
everything that was asked about it. The rule is the same for a mean of values and for a score of a whole set, such as
macro-F1 or BLEU:

1. *Spread.* Each of the G pictures is left out once (jackknife, Efron and Tibshirani 1993). With the score θ and the
   score θ₍₋g₎ without picture g, the contributions r_g = (G − 1)(θ − θ₍₋g₎) have a variance V.
2. *How many pictures it is worth.* A score between 0 and 1 has at most the variance θ(1 − θ): every picture is wholly
   right or wholly wrong. So it is worth n = G · [G θ(1 − θ) + 1] / [G V + 1] such pictures. The 1 on both sides is one
   further picture that is wholly wrong. Without it, a perfect score would have no spread at all; with it, 200 of 200
   and 199 of 200 are close.
3. *The interval* is that of Agresti and Coull (1998) for a share θ of n trials: z² trials are added, half of them
   right. It always has a width and never leaves 0 .. 1.

A score with other ends is brought to 0 .. 1 first. A score without ends (a distance) has θ ± t √(V / G), with Student's
t of G − 1 degrees of freedom. NaN means that an example has no such score: it is left out of the mean and counted in
``undefined``.

The limits of this rule:

- Where pictures with many questions score higher or lower than those with few, a small set is biased, and its interval
  holds the truth less often than promised.
- Macro-F1 with many rare classes is biased low: a class that occurs once or twice is often scored 0. The interval is
  around the biased score.
- Few pictures whose scores lie close together, away from 0 and 1, get a wider interval than their spread asks for: step
  2 adds a picture that is wholly wrong.
- Scores without ends are taken as normal. With few pictures and a long tail the interval is too narrow.

Axes: N values, G pictures.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import ConfigError, DataError, ShapeError
from saccade.metrics.student import t_quantile

Ends = tuple[float, float] | None
"""The lowest and the highest value that a score can have; None: it has none."""
SHARE: Ends = (0.0, 1.0)
_SLACK = 1e-4  # of the range: how far rounding may lead beyond an end


class Mean(NamedTuple):
    """A mean that says how many values it rests on."""

    mean: float
    """NaN when no value is defined."""
    n: int
    undefined: int


class Interval(NamedTuple):
    """A score with its confidence interval."""

    mean: float
    """NaN when no value is defined."""
    low: float
    """NaN, as ``high``, when fewer than two images have a defined value: one image says nothing about spread."""
    high: float
    n: int
    """Defined values."""
    images: int
    """Inputs, pictures or stories, with at least one defined value: the number of independent pieces of evidence."""
    undefined: int
    """Values that were NaN and do not count."""

    def __str__(self) -> str:
        """To be read: mean, interval, and what they rest on.

        >>> print(Interval(0.634007, 0.580894, 0.688787, n=300, images=100, undefined=2))
        0.634 (0.581–0.689), n 300 from 100 inputs, 2 undefined
        """
        spread = "" if self.low != self.low else f" ({self.low:.3f}–{self.high:.3f})"
        inputs = "" if self.images == self.n else f" from {self.images:,} input{'s' * (self.images != 1)}"
        undefined = f", {self.undefined:,} undefined" if self.undefined else ""
        return f"{self.mean:.3f}{spread}, n {self.n:,}{inputs}{undefined}"


def mean_defined(values: Tensor) -> Mean:
    """The mean of the values (N,) that are not NaN, with the number of those that are."""
    values = _check_values("values", values)
    defined = values[~values.isnan()]
    return Mean(float(defined.mean()), len(defined), len(values) - len(defined))


def mean_interval(values: Tensor, images: Tensor | None = None, *, ends: Ends = SHARE, level: float = 0.95) -> Interval:
    """The mean of ``values`` with its interval, see the module.

    >>> print(mean_interval(torch.ones(200)))
    1.000 (0.977–1.000), n 200
    >>> print(mean_interval(torch.ones(200), torch.arange(200) // 7))
    1.000 (0.861–1.000), n 200 from 29 inputs

    Args:
        values: scores (N,), NaN where undefined.
        images: id of each score's image, (N,) integers; None when every score has an image of its own.
        ends: between which every value lies; None for scores without ends.
        level: how often such intervals hold the truth.
    """
    values = _check_values("values", values)
    images = torch.arange(len(values)) if images is None else _check_images(images, values)
    defined = ~values.isnan()
    kept, undefined = values[defined], int((~defined).sum())
    if not len(kept):
        return Interval(float("nan"), float("nan"), float("nan"), 0, 0, undefined)
    found, image = torch.unique(images[defined], return_inverse=True)  # (G,), (n,)
    mean = kept.mean()
    counts = torch.bincount(image, minlength=len(found)).double()  # (G,)
    # From the mean on, not from 0: sums of equal values then differ by nothing, not by their rounding.
    apart = torch.zeros(len(found), dtype=torch.float64).index_add_(0, image, kept - mean)  # (G,)
    without = mean + (apart.sum() - apart) / (counts.sum() - counts)  # (G,)
    _check_ends(kept, ends)
    low, high = jackknife_interval(mean, without, ends=ends, level=level)
    return Interval(float(mean), float(low), float(high), len(kept), len(found), undefined)


def jackknife_interval(
    score: Tensor, without: Tensor, *, ends: Ends = SHARE, level: float = 0.95
) -> tuple[Tensor, Tensor]:
    """Low and high (…) of a ``score`` (…), from the scores ``without`` (…,G) each of its pictures; see the module.

    NaN with fewer than two pictures. A NaN in ``without`` is a score that is not defined without that picture: as if
    that picture changed nothing.
    """
    if not 0 < level < 1:
        raise ConfigError(f"level: a share between 0 and 1, found {level:g}")
    pictures = without.shape[-1]
    if pictures < 2:
        nothing = torch.full_like(score, torch.nan)
        return nothing, nothing
    z = NormalDist().inv_cdf((1 + level) / 2)
    low, high = (0.0, 1.0) if ends is None else ends
    apart = (score.unsqueeze(-1) - without).nan_to_num(0.0) / (high - low)  # (…,G)
    variance = ((pictures - 1) * apart).var(-1)  # (…): V
    share = (score - low) / (high - low)  # (…): θ
    if ends is None:
        half = t_quantile(level, pictures - 1) * (variance / pictures).sqrt()
        return score - half, score + half
    share = share.clamp(0, 1)
    worth = pictures * (pictures * share * (1 - share) + 1) / (pictures * variance + 1)  # (…): n
    trials = worth + z * z
    centre = (worth * share + z * z / 2) / trials
    half = z * (centre * (1 - centre) / trials).sqrt()
    return low + (high - low) * (centre - half).clamp(min=0), low + (high - low) * (centre + half).clamp(max=1)


def paired_difference(
    first: Tensor, second: Tensor, images: Tensor | None = None, *, ends: Ends = (-1.0, 1.0), level: float = 0.95
) -> Interval:
    """The mean of ``first − second`` on the same examples, with its interval; an interval beyond 0 is a difference.

    Pairs of which either value is NaN are undefined. ``ends`` are those of a difference.
    """
    first, second = _check_values("first", first), _check_values("second", second)
    if first.shape != second.shape:
        raise ShapeError("second", f"{tuple(first.shape)} as the first", second.shape)
    return mean_interval(first - second, images, ends=ends, level=level)


def _check_values(name: str, values: Tensor) -> Tensor:
    if values.dim() != 1:
        raise ShapeError(name, "(N,)", values.shape)
    values = values.detach().cpu().double()
    if bool(values.isinf().any()):
        raise DataError(f"{name}: value {int(values.isinf().nonzero()[0, 0])} is infinite; scores are finite or NaN")
    return values


def _check_ends(values: Tensor, ends: Ends) -> None:
    if ends is None:
        return
    slack = _SLACK * (ends[1] - ends[0])
    outside = (values < ends[0] - slack) | (values > ends[1] + slack)
    if bool(outside.any()):
        found = float(values[outside][0])
        raise DataError(
            f"values: found {found:g}, not within {ends[0]:g} … {ends[1]:g}; give the ends of this score, or ends=None "
            "if it has none"
        )


def _check_images(images: Tensor, values: Tensor) -> Tensor:
    if images.shape != values.shape:
        raise ShapeError("images", f"{tuple(values.shape)}, one id for each value", images.shape)
    if images.is_floating_point():
        raise DataError(f"images: expected integer ids, found {images.dtype}")
    return images.cpu()
