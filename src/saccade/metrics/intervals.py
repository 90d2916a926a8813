"""Means of per-picture scores, and how sure they are: bootstrap intervals that resample images.

Examples that share an image (several questions about one scene) are not independent, so the unit that is resampled
is the image with everything that was asked about it: a cluster bootstrap with percentile intervals (Efron and
Tibshirani 1993). NaN means that an example has no such score: it is left out of the mean and counted in ``undefined``.

Where every value is 0, or every value is 1, all resampled data sets are alike and their interval has no width, although
200 right answers of 200 do not prove a model that is never wrong. There the interval is Wilson's (1927) for a share of
0 or 1 among the images.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import ConfigError, DataError, ShapeError

_CELLS_AT_ONCE = 4_000_000  # draws × images held in memory together


class Mean(NamedTuple):
    """A mean that says how many values it rests on."""

    mean: float
    """NaN when no value is defined."""
    n: int
    undefined: int


class Interval(NamedTuple):
    """A mean with its confidence interval."""

    mean: float
    """NaN when no value is defined."""
    low: float
    """NaN, as ``high``, when fewer than two images have a defined value: one image says nothing about spread."""
    high: float
    n: int
    """Defined values."""
    images: int
    """Images with at least one defined value: the number of independent pieces of evidence."""
    undefined: int
    """Values that were NaN and do not count."""

    def __str__(self) -> str:
        """To be read: mean, interval, and what they rest on.

        >>> print(Interval(0.634007, 0.580894, 0.688787, n=300, images=100, undefined=2))
        0.634 (0.581–0.689), n 300 in 100 pictures, 2 undefined
        """
        spread = "" if self.low != self.low else f" ({self.low:.3f}–{self.high:.3f})"
        pictures = "" if self.images == self.n else f" in {self.images:,} pictures"
        undefined = f", {self.undefined:,} undefined" if self.undefined else ""
        return f"{self.mean:.3f}{spread}, n {self.n:,}{pictures}{undefined}"


def mean_defined(values: Tensor) -> Mean:
    """The mean of the values (N,) that are not NaN, with the number of those that are."""
    values = _check_values("values", values)
    defined = values[~values.isnan()]
    return Mean(float(defined.mean()), len(defined), len(values) - len(defined))


def bootstrap(
    values: Tensor, images: Tensor | None = None, *, draws: int = 1000, level: float = 0.95, seed: int = 0
) -> Interval:
    """The mean of ``values`` and a percentile interval from resampling images with replacement.

    Where every value is 0, or every value is 1, it is Wilson's interval for a share of the images. Where all are equal
    to something else it has no width, however few images there are: read ``images`` beside it.

    Args:
        values: scores (N,), NaN where undefined.
        images: id of each score's image, (N,) integers; None when every score has an image of its own.
        draws: resampled data sets.
        level: the share of draws between low and high.
        seed: the same seed gives the same interval, on every device.
    """
    found = _bootstrap(values, images, draws, level, seed)
    if found.images < 2 or found.mean not in (0.0, 1.0) or not bool(((values == found.mean) | values.isnan()).all()):
        return found
    low, high = wilson(found.mean, found.images, level)
    return found._replace(low=low, high=high)


def wilson(share: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a ``share`` of ``n`` independent trials; never without width, never beyond 0 .. 1.

    >>> tuple(round(end, 3) for end in wilson(1.0, 200))
    (0.981, 1.0)
    """
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    centre = share + z2 / (2 * n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n)))
    return max(0.0, (centre - half) / (1 + z2 / n)), min(1.0, (centre + half) / (1 + z2 / n))


def _bootstrap(values: Tensor, images: Tensor | None, draws: int, level: float, seed: int) -> Interval:
    """The percentile interval alone."""
    if draws < 1 or not 0 < level < 1:
        raise ConfigError(f"bootstrap: draws must be at least 1 and level between 0 and 1; found {draws}, {level:g}")
    values = _check_values("values", values)
    images = torch.arange(len(values)) if images is None else _check_images(images, values)
    defined = ~values.isnan()
    n, undefined = int(defined.sum()), int((~defined).sum())
    if n == 0:
        return Interval(float("nan"), float("nan"), float("nan"), 0, 0, undefined)
    kept = values[defined]
    found, image = torch.unique(images[defined], return_inverse=True)  # (G,), (n,)
    totals = torch.zeros(len(found), 2, dtype=torch.float64)  # sum of values and number of values of each image
    totals.index_add_(0, image, torch.stack([kept, torch.ones_like(kept)], dim=1))
    mean = float(kept.mean())
    if len(found) < 2:
        return Interval(mean, float("nan"), float("nan"), n, len(found), undefined)
    sums = resampled_sums(totals, draws, seed)  # (draws,2)
    means = sums[:, 0] / sums[:, 1]  # (draws,)
    tail = (1 - level) / 2
    low, high = torch.quantile(means, torch.tensor([tail, 1 - tail], dtype=torch.float64)).tolist()
    return Interval(mean, low, high, n, len(found), undefined)


def paired_difference(
    first: Tensor,
    second: Tensor,
    images: Tensor | None = None,
    *,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """The mean of ``first − second`` on the same examples, with its interval; an interval beyond 0 is a difference.

    Pairs of which either value is NaN are undefined.
    """
    first, second = _check_values("first", first), _check_values("second", second)
    if first.shape != second.shape:
        raise ShapeError("second", f"{tuple(first.shape)} as the first", second.shape)
    return _bootstrap(first - second, images, draws, level, seed)  # no difference at all is no share of 0


def resampled_sums(totals: Tensor, draws: int, seed: int) -> Tensor:
    """Sums (draws,D) over data sets made by drawing as many images as there are, from what each one adds (G,D)."""
    count = len(totals)
    generator = torch.Generator().manual_seed(seed)
    at_once = max(1, _CELLS_AT_ONCE // count)
    sums = []
    for start in range(0, draws, at_once):
        rows = min(at_once, draws - start)
        picked = torch.randint(count, (rows, count), generator=generator)  # (R,G)
        cells = picked + count * torch.arange(rows).unsqueeze(1)  # (R,G) numbered through
        times = torch.bincount(cells.flatten(), minlength=rows * count).view(rows, count)  # (R,G) multinomial counts
        sums.append(times.double() @ totals)  # (R,D)
    return torch.cat(sums)


def _check_values(name: str, values: Tensor) -> Tensor:
    if values.dim() != 1:
        raise ShapeError(name, "(N,)", values.shape)
    values = values.detach().cpu().double()
    if bool(values.isinf().any()):
        raise DataError(f"{name}: value {int(values.isinf().nonzero()[0, 0])} is infinite; scores are finite or NaN")
    return values


def _check_images(images: Tensor, values: Tensor) -> Tensor:
    if images.shape != values.shape:
        raise ShapeError("images", f"{tuple(values.shape)}, one id for each value", images.shape)
    if images.is_floating_point():
        raise DataError(f"images: expected integer ids, found {images.dtype}")
    return images.cpu()
