"""The grids that a map was made on: baselines and bounds are made on the same ones, and combined as the map was.

A model's map can pass through several grids: the total of progressive attention is the product of one map for each
stage. A baseline is then made on every grid, and the results are combined in the same way. The bound is the best map
that weights ≥ 0 on these grids can make, combined in the same way: no model with these grids can exceed it.
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
from saccade.metrics.maps.bounds import best_cells
from saccade.metrics.maps.localisation import true_positive_strength
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
    has_crops: bool = False
    """Whether a box is part of the map too: any box is possible, so there is no bound."""

    def __post_init__(self) -> None:
        if not self.grids:
            raise DataError("grids: expected at least one; leave them out for maps that were made on pixels")
        if self.total not in COMBINE:
            raise DataError(f"unknown total '{self.total}': {nearest(str(self.total), COMBINE)}")

    @classmethod
    def pixels(cls, size: Size) -> Grids:
        """The pixels of a picture of ``size`` (H, W): no grid that is coarser."""
        return cls((Grid(geometry.identity(), size),))

    @property
    def is_shared(self) -> bool:
        """Whether the grids lie the same on all pictures: what is made on them blindly is made once."""
        return all(frame.dim() == 2 for frame, _ in self._used())

    def through(self, make: Callable[[Tensor, Size], Tensor]) -> Tensor:
        """The map (B,H,W) that follows from what ``make(frame, cells)`` lays over the picture, grid by grid."""
        return self._combined([make(frame, cells) for frame, cells in self._used()])

    def oracle(self, evidence: Tensor) -> Tensor | None:
        """The map (B,H,W) of the highest true-positive strength that weights ≥ 0 on these grids can have.

        * one grid, or the last one: its best single cell, see :func:`saccade.metrics.maps.baselines.grid_oracle`;
        * a mean: the best single cell of all grids, because a mean never exceeds its best part;
        * a product: the best choice of one cell on each grid, see :mod:`saccade.metrics.maps.bounds`.

        Returns:
            None where no such map is known: a crop is part of the map, a product has frames that turn, or its grids
            overlap in too many ways.
        """
        used = self._used()
        if self.has_crops:
            return None
        if not len(evidence):
            return evidence.float()
        if self.total == "product" and len(used) > 1:
            return best_cells(evidence, [frame for frame, _ in used], [cells for _, cells in used])
        best = grid_oracle(evidence, *used[0])  # (B,H,W)
        for frame, cells in used[1:]:
            other = grid_oracle(evidence, frame, cells)
            is_better = true_positive_strength(other, evidence) > true_positive_strength(best, evidence)  # (B,)
            best = torch.where(is_better[:, None, None], other, best)
        return best

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
    """The grids of all looks that the total is made of, on the picture shown at ``size``; None for crops alone.

    A look with steps counts once for each step, as in the total. Where all parts of a mean share one grid, their mean
    lies on that grid, so it is told once.
    """
    looks = trace.looks_of_total[-1:] if trace.total == "last" else trace.looks_of_total
    if not looks:
        raise DataError("this model has no look on a picture: there is nothing to score")
    found: list[Grid] = []
    for look in looks:
        if look.weights is not None:
            frame = trace.frame_on(look, size).to(look.weights.device)
            found += [Grid(_shared(frame), (look.weights.shape[-2], look.weights.shape[-1]))] * look.steps
    if not found:
        return None
    if trace.total != "product" and all(_are_equal(found[0], other) for other in found[1:]):
        found = found[:1]
    return Grids(tuple(found), trace.total, has_crops=any(look.weights is None for look in looks))


def _are_equal(one: Grid, other: Grid) -> bool:
    return one.cells == other.cells and torch.equal(one.frame, other.frame)


def _shared(frame: Tensor) -> Tensor:
    """One frame (2,3) where those of all pictures (B,2,3) are equal: a baseline is then laid out once for all."""
    return frame[0] if frame.dim() == 3 and len(frame) and bool((frame == frame[:1]).all()) else frame
