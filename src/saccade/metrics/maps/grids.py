"""The grids that a map was made on: baselines and bounds are made on the same ones, and combined as the map was.

A model's map can pass through several grids: the total of progressive attention is the product of one map for each
stage. A baseline is then made on every grid, and the results are combined in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError, nearest
from saccade.geometry import Size
from saccade.metrics.maps.baselines import grid_oracle
from saccade.trace import COMBINE, AttentionTrace, Total


class Grid(NamedTuple):
    """Cells laid over a picture."""

    frame: Tensor
    """(2,3) or (B,2,3): cells → pixels of the picture that is scored."""
    cells: Size
    """(h, w)."""


@dataclass(frozen=True)
class Grids:
    """All grids of one map, and how what is made on each becomes one map."""

    grids: tuple[Grid, ...]
    total: Total = "last"

    def __post_init__(self) -> None:
        if not self.grids:
            raise DataError("grids: expected at least one; leave them out for maps that were made on pixels")
        if self.total not in COMBINE:
            raise DataError(f"unknown total '{self.total}': {nearest(str(self.total), COMBINE)}")

    @classmethod
    def pixels(cls, size: Size) -> Grids:
        """The pixels of a picture of ``size`` (H, W): no grid that is coarser."""
        return cls((Grid(geometry.identity(), size),))

    def through(self, make: Callable[[Tensor, Size], Tensor]) -> Tensor:
        """The map (B,H,W) that follows from what ``make(frame, cells)`` lays over the picture, grid by grid."""
        return self._combined([make(frame, cells) for frame, cells in self._used()])

    def oracle(self, evidence: Tensor) -> Tensor:
        """The map (B,H,W) of the best single cell on each grid, see :func:`saccade.metrics.baselines.grid_oracle`.

        On one grid its true-positive strength is the exact bound. In a product, each grid chooses its cell among what
        the grids before it let through: every choice raises the strength or leaves it, but another order of choices
        may reach a little more.
        """
        laid: list[Tensor] = []
        for frame, cells in self._used():
            within = self._combined(laid) if laid and self.total == "product" else None
            laid.append(grid_oracle(evidence, frame, cells, within=within))
        return self._combined(laid)

    def at(self, rows: Tensor) -> Grids:
        """The grids of the examples ``rows`` (N,) of the batch."""
        return self._each(lambda frame: frame[rows.to(frame.device)] if frame.dim() == 3 else frame)

    def to(self, device: torch.device) -> Grids:
        """On another device."""
        return self._each(lambda frame: frame.to(device))

    def _used(self) -> tuple[Grid, ...]:
        return self.grids[-1:] if self.total == "last" else self.grids

    def _each(self, change: Callable[[Tensor], Tensor]) -> Grids:
        return replace(self, grids=tuple(Grid(change(frame), cells) for frame, cells in self.grids))

    def _combined(self, maps: Sequence[Tensor]) -> Tensor:
        if len(maps) == 1:
            return maps[0]
        combined = reduce(COMBINE[self.total][0], maps)
        return combined / len(maps) if self.total == "mean" else combined


def grids_of(trace: AttentionTrace, size: Size) -> Grids | None:
    """The grid of the last look with weights on the picture shown at ``size``; None when every look on it is a crop."""
    spatial = [look for look in trace.looks if look.is_spatial and look.frame is not None]
    if not spatial:
        raise DataError("this model has no look on a picture: there is nothing to score")
    for look in reversed(spatial):
        if look.weights is not None:
            frame = trace.frame_on(look, size).to(look.weights.device)
            return Grids((Grid(_shared(frame), (look.weights.shape[-2], look.weights.shape[-1])),), trace.total)
    return None


def _shared(frame: Tensor) -> Tensor:
    """One frame (2,3) where those of all pictures (B,2,3) are equal: a baseline is then laid out once for all."""
    return frame[0] if frame.dim() == 3 and len(frame) and bool((frame == frame[:1]).all()) else frame
