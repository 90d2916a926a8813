"""Maps compared with several points of a picture, such as fixations of an eye: NSS and two areas under a ROC curve.

Maps are (B,H,W), finite, of any sign. Points are (B,K,2) as (x, y) in pixels of the map, NaN where a picture has fewer
than K. A point belongs to the pixel that holds it, (⌊x⌋, ⌊y⌋). Points outside the picture do not count. A picture
without a point is NaN.

===============  ==================================================================================================
nss              mean over points of (map − mean) / standard deviation (of all pixels, divided by their number);
                 0 for a constant map. Peters et al. 2005
auc_judd         P(map at a point > map at a pixel) + ½ P(equal), over all points and all pixels. Judd et al. 2009
auc_shuffled     the same over all points and the points of *other* pictures: a map that only knows where people look
                 in any picture scores ½. Zhang et al. 2008
===============  ==================================================================================================

These are the definitions of pysaliency: ``NSS``, and ``AUC_per_image`` with uniform and shuffled non-fixations.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.columns import Values
from saccade.metrics.intervals import Interval
from saccade.metrics.maps import baselines
from saccade.metrics.maps.grids import Grids
from saccade.metrics.maps.scorer import EXCHANGES, can_exchange
from saccade.metrics.maps.values import where_defined

FIXATION_SCORES = ("nss", "auc_judd", "auc_shuffled")


def nss(maps: Tensor, points: Tensor) -> Tensor:
    """Normalised scanpath saliency (B,)."""
    maps = _checked(maps)
    return _nss(*_moments(maps), *at_points(maps, points))


def auc_judd(maps: Tensor, points: Tensor) -> Tensor:
    """How often a point has a higher value than a pixel of its picture (B,); ties count half."""
    maps = _checked(maps)
    pixels = maps.flatten(1).sort(1).values  # (B,P)
    values, exists = at_points(maps, points)
    return _area(_below(pixels, values), exists.new_full((len(maps),), pixels.shape[1], dtype=torch.int64), exists)


def auc_shuffled(maps: Tensor, points: Tensor, others: Tensor) -> Tensor:
    """How often a point has a higher value than a point of another picture (B,); ties count half.

    Args:
        maps: (B,H,W).
        points: (B,K,2) of each picture.
        others: (B,M,2) points of other pictures, in pixels of this one; NaN where there are fewer.
    """
    maps = _checked(maps)
    negatives, counts = _negatives(*at_points(maps, others))
    values, exists = at_points(maps, points)
    return _area(_below(negatives, values), counts, exists)


def at_points(maps: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """The value of each map at its points (B,K), 0 where there is none; and where there is one (B,K) bool."""
    if points.dim() != 3 or points.shape[0] != len(maps) or points.shape[2] != 2:
        raise ShapeError("points", f"({len(maps)},K,2)", points.shape)
    height, width = maps.shape[-2:]
    x, y = points.to(maps.device).unbind(-1)  # (B,K) each
    exists = (x >= 0) & (y >= 0) & (x < width) & (y < height)  # (B,K); comparisons with NaN are false
    at = torch.where(exists, y.floor() * width + x.floor(), 0.0).long()  # (B,K)
    return torch.where(exists, maps.flatten(1).gather(1, at), 0.0), exists


def drawn(points: Tensor, size: tuple[int, int]) -> Tensor:
    """The points themselves as a map (B,H,W): how many lie in each pixel."""
    canvas = torch.zeros(len(points), *size, device=points.device)
    _, exists = at_points(canvas, points)
    picture, which = exists.nonzero(as_tuple=True)  # (N,) each
    column, row = points[picture, which].floor().long().unbind(-1)
    return canvas.index_put_((picture, row, column), torch.ones_like(column, dtype=canvas.dtype), accumulate=True)


class PointScorer:
    """NSS and AUC of maps beside baselines, added up batch by batch.

    ``points_exact`` knows the points: a bound for all three scores on this truth. For NSS and Judd's AUC it is how many
    points lie in each pixel. For the shuffled AUC it is their share among the points of all pictures there: where
    everyone looks, a map gains less.
    """

    def __init__(self) -> None:
        self.total = Values()
        """Scores of the maps themselves."""
        self.baselines: dict[str, Values] = {}
        """By name: uniform, centre_gaussian, shuffled, points_exact."""
        self._groups = Values()

    @property
    def groups(self) -> Tensor:
        """The picture of each map, (N,)."""
        return self._groups["group"] if "group" in self._groups else torch.zeros(0, dtype=torch.int64)

    def intervals(self) -> dict[str, Interval]:
        """Every mean of ``total`` with its interval, with the picture as the unit."""
        return self.total.intervals(self.groups)

    def add(
        self,
        maps: Tensor,
        points: Tensor,
        *,
        pool: Tensor,
        own: Tensor,
        groups: Tensor,
        grids: Grids | None = None,
        donors: Tensor | None = None,
    ) -> None:
        """Score a batch.

        Args:
            maps: (B,H,W), finite.
            points: (B,K,2), see the module.
            pool: (M,2) points of all pictures, in pixels of these.
            own: (B,J,2) points of the pool that are each picture's own, which do not count; NaN where there are fewer.
            groups: id of the picture of each map (B,).
            grids: where the maps were made; None: on pixels.
            donors: (B,H,W) a map of another picture for each, used where the batch cannot exchange its own.
        """
        maps = _checked(maps)
        count, size = len(maps), (maps.shape[-2], maps.shape[-1])
        places = _Places(*(each.to(maps.device) for each in (points, pool, own)))
        self._groups.append(group=groups.cpu())
        mine = _Ranked(maps, places.pool)
        everyone = torch.arange(count, device=maps.device)  # (B,)
        self.total.add_values(mine.scores(everyone, places))
        where = (Grids.pixels(size) if grids is None else grids).to(maps.device)
        for name, lay in (("uniform", baselines.uniform), ("centre_gaussian", baselines.centre_gaussian)):
            laid = where.through(partial(lay, size=size))  # (1,H,W)
            self._baseline(name).add_values(_Ranked(laid, places.pool).scores(everyone.new_zeros(count), places))
        if can_exchange(groups.cpu()):
            ways = [baselines.derangement(groups, seed=seed).to(maps.device) for seed in range(EXCHANGES)]
            found = [mine.scores(rows, places) for rows in ways]
            means = {name: torch.stack([each[name] for each in found]).nanmean(0) for name in found[0]}
            self._baseline("shuffled").add_values(means)
        elif donors is not None:
            self._baseline("shuffled").add_values(_Ranked(donors, places.pool).scores(everyone, places))
        counted = drawn(places.points, size)  # (B,H,W)
        others = drawn(places.pool[None], size) - drawn(places.own, size)  # (B,H,W)
        exact = _Ranked(counted, places.pool).scores(everyone, places)
        best = _Ranked(counted / (counted + others).clamp(min=1), places.pool).scores(everyone, places)
        self._baseline("points_exact").add_values({**exact, "auc_shuffled": best["auc_shuffled"]})

    def _baseline(self, name: str) -> Values:
        return self.baselines.setdefault(name, Values())


class _Places(NamedTuple):
    """What maps of a batch are compared with."""

    points: Tensor
    """(B,K,2)."""
    pool: Tensor
    """(M,2)."""
    own: Tensor
    """(B,J,2)."""


class _Ranked:
    """Maps (K,H,W) with their pixels, and their values at the points of all pictures, in order: sorted once."""

    def __init__(self, maps: Tensor, pool: Tensor) -> None:
        self._maps = maps
        self._pixels = maps.flatten(1).sort(1).values  # (K,P)
        values, exists = at_points(maps, pool.expand(len(maps), -1, -1))  # (K,M)
        self._pool, self._counts = _negatives(values, exists)  # (K,M), (K,)
        self._moments = _moments(maps)  # (K,) each

    def scores(self, rows: Tensor, places: _Places) -> dict[str, Tensor]:
        """All three (B,) of the maps ``rows`` (B,)."""
        maps = self._maps[rows] if len(self._maps) > 1 else self._maps.expand(len(rows), -1, -1)  # (B,H,W)
        values, exists = at_points(maps, places.points)  # (B,K)
        pixels = self._pixels.shape[1] + torch.zeros_like(rows)  # (B,)
        theirs, is_theirs = at_points(maps, places.own)  # (B,J)
        apart = (values[:, :, None] > theirs[:, None]).double() + 0.5 * (values[:, :, None] == theirs[:, None])
        mine = (apart * is_theirs[:, None]).sum(2)  # (B,K): pairs with points of the picture itself
        others = _below(self._pool[rows], values) - mine  # (B,K)
        mean, spread, top = (each[rows] for each in self._moments)  # (B,) each
        return {
            "nss": _nss(mean, spread, top, values, exists),
            "auc_judd": _area(_below(self._pixels[rows], values), pixels, exists),
            "auc_shuffled": _area(others, self._counts[rows] - is_theirs.sum(1), exists),
        }


def _moments(maps: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, standard deviation and largest absolute value of maps (K,H,W): (K,) each, in float64."""
    wide = maps.flatten(1).double()  # (K,P)
    return wide.mean(1), wide.std(1, correction=0), wide.abs().amax(1)


def _nss(mean: Tensor, spread: Tensor, top: Tensor, values: Tensor, exists: Tensor) -> Tensor:
    """From mean, standard deviation and largest absolute value of each map (B,), and its values at points (B,K)."""
    is_flat = spread <= 1e-6 * top  # (B,): what is left is rounding of float32
    apart = (values.double() - mean[:, None]) / torch.where(is_flat, 1.0, spread)[:, None]  # (B,K)
    apart = torch.where(exists & ~is_flat[:, None], apart, 0.0)
    return where_defined(apart.sum(1) / exists.sum(1).clamp(min=1), exists.any(1))


def _negatives(values: Tensor, exists: Tensor) -> tuple[Tensor, Tensor]:
    """Values (B,M) in order, those that do not count behind all others; and how many count (B,)."""
    return torch.where(exists, values, torch.inf).sort(1).values, exists.sum(1)


def _below(negatives: Tensor, positives: Tensor) -> Tensor:
    """How many negatives (B,M), in order, lie below each positive (B,K), and half of those that equal it."""
    wanted = positives.contiguous()
    return (torch.searchsorted(negatives, wanted) + torch.searchsorted(negatives, wanted, right=True)).double() / 2


def _area(below: Tensor, counts: Tensor, exists: Tensor) -> Tensor:
    """P(positive > negative) + ½ P(equal), (B,)."""
    share = below / counts.clamp(min=1).double()[:, None]  # (B,K)
    mean = torch.where(exists, share, 0.0).sum(1) / exists.sum(1).clamp(min=1)
    return where_defined(mean, exists.any(1) & (counts > 0))


def _checked(maps: Tensor) -> Tensor:
    """Finite maps (B,H,W) in float32 or float64."""
    if maps.dim() != 3 or maps.shape[1] * maps.shape[2] == 0:
        raise ShapeError("maps", "(B,H,W) with at least one pixel", maps.shape)
    maps = maps if maps.dtype in (torch.float32, torch.float64) else maps.float()
    if not bool(maps.isfinite().all()):
        raise DataError("a map holds NaN or infinity: look for a division by zero in what made it")
    return maps
