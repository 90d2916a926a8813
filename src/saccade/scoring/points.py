"""Points as truth: those of each picture, and those of all pictures for the shuffled AUC."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.data.maps.members import picture_of
from saccade.geometry import Size
from saccade.metrics.maps.baselines import Grids
from saccade.metrics.maps.points import PointScorer
from saccade.metrics.maps.scorer import Baseline
from saccade.scoring.truths import Points, Truths

MAX_OTHERS = 10_000
"""Points of all pictures that the shuffled AUC compares with; of more, this many are drawn, always the same."""


class FixationPool:
    """The points of all pictures, and the scores of maps against them."""

    def __init__(self, truths: Truths, separator: str) -> None:
        self.scorer = PointScorer()
        self.outside = 0
        """Points outside their picture."""
        self._truths, self._separator = truths, separator
        pictures = truths.expected(set())
        held = [truths.points(name) for name in pictures]
        picture = [at for at, found in enumerate(held) for _ in range(len(found.at))]
        points = torch.cat([found.at for found in held] or [torch.zeros(0, 2, dtype=torch.float64)])  # (M,2)
        scale = torch.tensor([(1.0, 1.0) if (size := held[at].size) is None else (size[1], size[0]) for at in picture])
        self._sized = torch.tensor([held[at].size is not None for at in picture], dtype=torch.bool)  # (M,)
        chosen = torch.arange(len(points))
        if len(points) > MAX_OTHERS:
            chosen = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))[:MAX_OTHERS].sort().values
        self._share = (points / scale.reshape(-1, 2))[
            chosen
        ]  # (M,2): of the picture, or in pixels where it has no size
        self._sized = self._sized[chosen]
        self._places: dict[str, list[int]] = {}
        for at, number in enumerate(chosen.tolist()):
            self._places.setdefault(pictures[picture[number]], []).append(at)

    def size_of(self, truth: str) -> Size | None:
        """(H, W) of the picture, where the table tells it."""
        return self._truths.points(truth).size

    def add(
        self, truths: list[str], maps: Tensor, shown: Size, groups: Tensor, grids: Grids | None, donors: Baseline | None
    ) -> Tensor:
        """Score maps (B,H,W) over pictures of size ``shown``; which have no point inside (B,) bool."""
        found = [self._scaled(self._truths.points(name), shown) for name in truths]
        points = _padded(found)  # (B,K,2)
        extent = torch.tensor([shown[1], shown[0]])
        inside = ((points >= 0) & (points < extent)).all(-1)  # (B,K)
        self.outside += int((~points.isnan().any(-1) & ~inside).sum())
        pool = torch.where(self._sized[:, None], self._share * extent, self._share)  # (M,2)
        own = _padded([pool[self._places.get(self._of_picture(name), [])] for name in truths])  # (B,J,2)
        stand_in = None if donors is None else donors.maps
        self.scorer.add(maps, points, pool=pool, own=own, groups=groups, grids=grids, donors=stand_in)
        return ~inside.any(1)

    def _of_picture(self, name: str) -> str:
        return name if name in self._places else picture_of(name, self._separator)

    @staticmethod
    def _scaled(points: Points, shown: Size) -> Tensor:
        if points.size is None or points.size == shown:
            return points.at
        return points.at * torch.tensor([shown[1] / points.size[1], shown[0] / points.size[0]], dtype=torch.float64)


def _padded(points: list[Tensor]) -> Tensor:
    """Lists of points (K,2) as one (B,K,2), NaN where there are fewer."""
    most = max((len(each) for each in points), default=0)
    held = torch.full((len(points), max(1, most), 2), torch.nan, dtype=torch.float64)
    for row, each in enumerate(points):
        held[row, : len(each)] = each
    return held
