"""Maps compared with points: one click, fixations of an eye, glimpses of a model.

Maps are (B,H,W) on the pixels of the picture, points (x, y) in its pixels, NaN where there is none.

**One click** (B,2), and near it: within a share of the asked object's size. A score of a picture without a click, or
with one that lies outside with all its neighbourhood, is NaN.

* ``pointing_at``: whether the maximum lies near the click, of tied maxima the fraction; higher is better;
* ``attention_near``: the share of all attention near the click; higher is better;
* ``distance``: from the maximum to the click, in diagonals of the object's box, of tied maxima the mean; lower is
  better. A map without a maximum, constant or zero, is as far away as a pixel drawn at random.

:func:`at_points` and :func:`exactly_at` make maps that know only a position, on a grid and to the pixel.

**Fixations** (B,K,2). A point belongs to the pixel (⌊x⌋, ⌊y⌋); points outside the picture do not count. Maps may have
any sign. These are the definitions of pysaliency: ``NSS``, and ``AUC_per_image`` with uniform and shuffled
non-fixations.

===============  ==================================================================================================
nss              mean over points of (map − mean) / standard deviation (of all pixels, divided by their number);
                 0 for a constant map. Peters et al. 2005
auc_judd         P(map at a point > map at a pixel) + ½ P(equal), over all points and all pixels. Judd et al. 2009
auc_shuffled     the same over all points and the points of *other* pictures: a map that only knows where people look
                 in any picture scores ½. Zhang et al. 2008
===============  ==================================================================================================

**Glimpses.** Welleck et al. 2017 (arXiv:1711.05165), Section 5: attn_saliency = (1/k) Σ_i S_t at glimpse i, averaged
over all time steps and pictures. The printed values (58.7 to 126.5) are of a saliency that is not normalised.

Axes: B pictures, T steps, k glimpses of a step, (h, w) cells. A step that does not count is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.geometry import Size
from saccade.metrics.intervals import ByName, Grouped, Interval, Values
from saccade.metrics.maps import localisation
from saccade.metrics.maps.baselines import BLIND_MAPS, EXCHANGES, Grids, can_exchange, derangement
from saccade.metrics.maps.localisation import TIE, scale_to_peak, where_defined

NEAR = 0.1
"""Radius of "near", as a share of the diagonal of the object's box."""


def disc(points: Tensor, radius: Tensor, size: Size) -> Tensor:
    """The pixels (B,H,W) bool that hold ``points`` (B,2), or whose centres lie within ``radius`` (B,); none for NaN."""
    offset = _from_points(points, size)  # (B,H,W,2)
    within: Tensor = torch.linalg.vector_norm(offset, dim=-1) <= radius[:, None, None]  # (B,H,W)
    return within | (offset.abs() <= 0.5).all(-1)


@dataclass(frozen=True)
class Clicks:
    """One click for each map."""

    points: Tensor
    """(B,2) as (x, y); NaN where nothing was clicked."""
    diagonal: Tensor
    """(B,) of the object's box in pixels; of the picture if there is no box."""
    mask: Tensor
    """(B,H,W) bool: what is near the click."""
    away: Tensor
    """(B,H,W): distance from the click to every pixel, 0 where nothing was clicked."""

    @classmethod
    def at(cls, points: Tensor, boxes: Tensor, size: Size) -> Clicks:
        """Clicks at ``points`` (B,2) on objects in ``boxes`` (B,4), both NaN if unknown, on maps of ``size``."""
        diagonal = torch.linalg.vector_norm(boxes[:, 2:] - boxes[:, :2], dim=1)  # (B,)
        whole = torch.full_like(diagonal, float(size[0] ** 2 + size[1] ** 2) ** 0.5)  # that of the picture
        diagonal = torch.where(diagonal > 0, diagonal, whole)
        away = torch.linalg.vector_norm(_from_points(points, size), dim=-1)  # (B,H,W)
        return cls(points, diagonal, disc(points, NEAR * diagonal, size), away.nan_to_num())

    def scores(self, maps: Tensor) -> dict[str, Tensor]:
        """``pointing_at``, ``attention_near`` and ``distance`` (B,), see the module."""
        maps = localisation.check_maps(maps)
        peak = maps.amax(dim=(-2, -1), keepdim=True)  # (B,1,1)
        tied = (scale_to_peak(maps) >= 1 - TIE) | (peak == 0)  # (B,H,W)
        distance = (self.away * tied).sum(dim=(-2, -1)) / tied.sum(dim=(-2, -1))  # (B,)
        return {
            "pointing_at": localisation.pointing(maps, self.mask),
            "attention_near": localisation.true_positive_strength(maps, self.mask),
            "distance": where_defined(distance / self.diagonal, ~self.points.isnan().any(1)),
        }

    def only(self, is_known: Tensor) -> Clicks:
        """Those of the examples where ``is_known`` (B,) is True."""
        points = torch.where(is_known[:, None], self.points, torch.nan)
        return replace(self, points=points, mask=self.mask & is_known[:, None, None])


def at_points(points: Tensor, frame: Tensor, grid: Size, size: Size) -> Tensor:
    """All weight on the cell nearest to each point (B,2), laid over the picture: (B,H,W); zeros for NaN."""
    cells = geometry.apply(geometry.invert(frame), points.nan_to_num()) - 0.5  # (B,2) as (column, row), centres whole
    limit = torch.tensor([grid[1] - 1, grid[0] - 1], device=cells.device)
    column, row = torch.minimum(cells.round().clamp(min=0), limit).long().unbind(-1)  # (B,) each
    weights = torch.unflatten(F.one_hot(row * grid[1] + column, grid[0] * grid[1]).float(), 1, grid)  # (B,h,w)
    clicked = ~points.isnan().any(1)  # (B,)
    return geometry.project(weights * clicked[:, None, None].to(weights), frame, size)


def exactly_at(points: Tensor, size: Size) -> Tensor:
    """The pixel (B,H,W) that holds each point, clamped to the picture; zeros for NaN."""
    limit = torch.tensor([size[1] - 1, size[0] - 1], device=points.device)
    column, row = torch.minimum(points.nan_to_num().floor().clamp(min=0), limit).long().unbind(-1)  # (B,) each
    one = torch.unflatten(F.one_hot(row * size[1] + column, size[0] * size[1]), 1, size)  # (B,H,W)
    return one.float() * (~points.isnan().any(1))[:, None, None]


def _from_points(points: Tensor, size: Size) -> Tensor:
    """From each point to the centre of every pixel, as (x, y): (B,H,W,2)."""
    rows, columns = (torch.arange(pixels, device=points.device) + 0.5 for pixels in size)
    centres = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)  # (H,W,2)
    return centres - points[:, None, None, :]


def values_at(maps: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """The value of each map at its points (B,K), 0 where there is none; and where there is one (B,K) bool."""
    height, width = maps.shape[-2:]
    x, y = points.to(maps.device).unbind(-1)  # (B,K) each
    exists = (x >= 0) & (y >= 0) & (x < width) & (y < height)  # (B,K); comparisons with NaN are false
    at = torch.where(exists, y.floor() * width + x.floor(), 0.0).long()  # (B,K)
    return torch.where(exists, maps.flatten(1).gather(1, at), 0.0), exists


def drawn(points: Tensor, size: tuple[int, int]) -> Tensor:
    """The number of points in each pixel: (B,H,W)."""
    canvas = torch.zeros(len(points), *size, device=points.device)
    _, exists = values_at(canvas, points)
    picture, which = exists.nonzero(as_tuple=True)  # (N,) each
    column, row = points[picture, which].floor().long().unbind(-1)
    return canvas.index_put_((picture, row, column), torch.ones_like(column, dtype=canvas.dtype), accumulate=True)


class PointScorer(Grouped):
    """NSS and AUC of maps and baselines, added batch by batch.

    ``points_exact`` knows the points and bounds all three scores: for NSS and Judd's AUC it is the number of points in
    each pixel, for the shuffled AUC their share among the points of all pictures there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = Values()
        """Scores of the maps themselves."""
        self.baselines = ByName()
        """By name: uniform, centre_gaussian, shuffled, points_exact."""

    def intervals(self) -> dict[str, Interval]:
        """Every mean of ``total`` with its interval; the unit is the picture."""
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
        maps = _finite(maps)
        count, size = len(maps), (maps.shape[-2], maps.shape[-1])
        points, pool, own = (tensor.to(maps.device) for tensor in (points, pool, own))
        self._columns.append(group=groups.cpu())
        mine = _Ranked(maps, pool)
        everyone = torch.arange(count, device=maps.device)  # (B,)
        self.total.add_values(mine.scores(everyone, points, own))
        rivals: dict[str, dict[str, Tensor]] = {}
        where = (Grids.pixels(size) if grids is None else grids).to(maps.device)
        for name, lay in BLIND_MAPS.items():
            laid = where.blind(lay, size, 1)  # (1,H,W)
            rivals[name] = _Ranked(laid, pool).scores(everyone.new_zeros(count), points, own)
        if can_exchange(groups.cpu()):
            orders = [derangement(groups, seed=seed).to(maps.device) for seed in range(EXCHANGES)]
            exchanged = [mine.scores(rows, points, own) for rows in orders]
            draws = {name: torch.stack([scores[name] for scores in exchanged]) for name in exchanged[0]}
            rivals["shuffled"] = {name: values.nanmean(0) for name, values in draws.items()}
        elif donors is not None:
            rivals["shuffled"] = _Ranked(donors, pool).scores(everyone, points, own)
        counted = drawn(points, size)  # (B,H,W)
        others = drawn(pool[None], size) - drawn(own, size)  # (B,H,W)
        exact = _Ranked(counted, pool).scores(everyone, points, own)
        best = _Ranked(counted / (counted + others).clamp(min=1), pool).scores(everyone, points, own)
        rivals["points_exact"] = {**exact, "auc_shuffled": best["auc_shuffled"]}
        for name, scores in rivals.items():
            self.baselines.add_values(name, scores)


class _Ranked:
    """Maps (K,H,W) with their pixels and their values at the points of a pool ([K,]M,2), sorted once."""

    def __init__(self, maps: Tensor, pool: Tensor) -> None:
        self._maps, wide = maps, maps.flatten(1).double()  # (K,P)
        self._pixels = maps.flatten(1).sort(1).values  # (K,P)
        values, exists = values_at(maps, pool.expand(len(maps), -1, -1))  # (K,M)
        self._pool = torch.where(exists, values, torch.inf).sort(1).values  # (K,M): what does not count comes last
        self._counts = exists.sum(1)  # (K,)
        self._mean, self._spread = wide.mean(1), wide.std(1, correction=0)  # (K,) each
        self._is_flat = self._spread <= 1e-6 * wide.abs().amax(1)  # (K,): what is left is rounding of float32

    def scores(self, rows: Tensor, points: Tensor, own: Tensor) -> dict[str, Tensor]:
        """All three (B,) of the maps ``rows`` (B,) at ``points`` (B,K,2); of the pool, ``own`` (B,J,2) do not count."""
        maps = self._maps[rows] if len(self._maps) > 1 else self._maps.expand(len(rows), -1, -1)  # (B,H,W)
        values, exists = values_at(maps, points)  # (B,K)
        has_points, count = exists.any(1), exists.sum(1).clamp(min=1)  # (B,) each

        def mean(of: Tensor, defined: Tensor) -> Tensor:
            return where_defined(torch.where(exists, of, 0.0).sum(1) / count, has_points & defined)

        theirs, is_theirs = values_at(maps, own)  # (B,J)
        apart = (values[:, :, None] > theirs[:, None]).double() + 0.5 * (values[:, :, None] == theirs[:, None])
        mine = (apart * is_theirs[:, None]).sum(2)  # (B,K): pairs with points of the picture itself
        others = self._counts[rows] - is_theirs.sum(1)  # (B,)
        shuffled = (_below(self._pool[rows], values) - mine) / others.clamp(min=1).double()[:, None]  # (B,K)
        judd = _below(self._pixels[rows], values) / self._pixels.shape[1]  # (B,K)
        is_flat = self._is_flat[rows][:, None]  # (B,1)
        spread = torch.where(is_flat, 1.0, self._spread[rows][:, None])
        nss = torch.where(is_flat, 0.0, (values.double() - self._mean[rows][:, None]) / spread)  # (B,K)
        always = torch.ones_like(has_points)
        return {"nss": mean(nss, always), "auc_judd": mean(judd, always), "auc_shuffled": mean(shuffled, others > 0)}


def _below(negatives: Tensor, positives: Tensor) -> Tensor:
    """How many sorted negatives (B,M) lie below each positive (B,K), plus half of the equal ones."""
    wanted = positives.contiguous()
    return (torch.searchsorted(negatives, wanted) + torch.searchsorted(negatives, wanted, right=True)).double() / 2


def _finite(maps: Tensor) -> Tensor:
    maps = maps if maps.dtype in (torch.float32, torch.float64) else maps.float()
    if not bool(maps.isfinite().all()):
        raise DataError("a map holds NaN or infinity: look for a division by zero in what made it")
    return maps


def at_glimpses(maps: Tensor, choice: Tensor, active: Tensor | None = None) -> Tensor:
    """The mean over a step's glimpses of its map there: (B,T).

    Args:
        maps: (B,T,h,w), one for each step; or (B,h,w), one for all.
        choice: (B,T,k) cells, numbered row by row.
        active: (B,T) steps that count; None: all.
    """
    flat = _by_step(maps, choice.shape[1])  # (B,T,hw)
    values = torch.take_along_dim(flat, choice, dim=2).mean(-1)  # (B,T)
    return values if active is None else where_defined(values, active.bool())


def at_random(maps: Tensor, active: Tensor) -> Tensor:
    """The expectation of :func:`at_glimpses` for uniformly random cells: (B,T), as ``active``."""
    return where_defined(_by_step(maps, active.shape[1]).mean(-1), active.bool())


def most_salient(saliency: Tensor) -> Tensor:
    """The cell (B,T,1) of the highest value of each map (B,T,h,w)."""
    return saliency.flatten(2).argmax(-1, keepdim=True)


def _by_step(maps: Tensor, steps: int) -> Tensor:
    """Maps as (B,T,hw) in float64; a single one is repeated for every step."""
    stepped = maps.unsqueeze(1).expand(-1, steps, -1, -1) if maps.dim() == 3 else maps  # (B,T,h,w)
    return stepped.flatten(2).double()
