"""The best map that a product of grids allows: the exact bound of true-positive strength, one cell chosen on each grid.

A map that is a product of K grids, each projected onto the picture, is ``Πₖ Σ_c w_kc · h_kc(x)`` with weights ≥ 0 and
the projected cells ``h_kc``. With all grids fixed but one, true-positive strength is a ratio of two linear functions of
that grid's weights, and a ratio of sums never exceeds the largest ratio of its parts: the best single cell of that grid
does at least as well. This holds for each grid in turn. So some choice of *one cell on each grid* reaches the most that
any weights can, and trying every choice gives the exact bound.

A projected cell is the product of a profile over rows and a profile over columns. Cells that do not overlap give an
empty product. That leaves a few hundred different profiles on each axis, and two matrix products try them all. Those
that touch no row of the evidence need not be tried.

Axes: B pictures, H and W pixels, P profiles over rows, Q profiles over columns.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import torch
from torch import Tensor

from saccade import geometry
from saccade.geometry import Size
from saccade.metrics.maps.values import check_mask

MAX_PROFILES = 4096
"""On one axis; grids that overlap in more ways have no bound here."""
MAX_OVERLAP = 256
"""Cells of a further grid that are tried with each profile, at most, before those that do not overlap are dropped."""
_CELLS_AT_ONCE = 16_000_000  # strengths held in memory together


def best_cells(evidence: Tensor, frames: Sequence[Tensor], cells: Sequence[Size]) -> Tensor | None:
    """The map (B,H,W) of the cells, one on each grid, whose product has the highest true-positive strength.

    Where evidence is empty the cells are arbitrary, as the score is undefined.

    Args:
        evidence: (B,H,W) bool.
        frames: of each grid, cells → pixels of the picture, (2,3) or (B,2,3).
        cells: (h, w) of each grid.

    Returns:
        None where a frame turns or shears, so that its cells are no products of rows and columns, or where there are
        more than :data:`MAX_PROFILES` profiles on an axis.
    """
    check_mask(evidence, "evidence")
    if all(frame.dim() == 2 for frame in frames):
        return _on_shared_frames(evidence, frames, cells)
    found = []
    for number in range(len(evidence)):
        own = [frame[number] if frame.dim() == 3 else frame for frame in frames]
        laid = _on_shared_frames(evidence[number : number + 1], own, cells)
        if laid is None:
            return None
        found.append(laid)
    return torch.cat(found)


def _on_shared_frames(evidence: Tensor, frames: Sequence[Tensor], cells: Sequence[Size]) -> Tensor | None:
    """:func:`best_cells` of frames (2,3)."""
    size = (evidence.shape[1], evidence.shape[2])
    places = tuple(tuple(frame.double().flatten().tolist()) for frame in frames)
    found = _profiles(places, tuple(cells), size, (MAX_PROFILES, MAX_OVERLAP), evidence.device)
    if found is None:
        return None
    rows, columns = found
    at_once = max(1, _CELLS_AT_ONCE // (len(rows) * len(columns)))
    try_pairs = _in_their_box if evidence.device.type == "cpu" else _everywhere
    chosen = torch.cat([try_pairs(part, rows, columns.shares) for part in torch.split(evidence, at_once)])  # (B,)
    row, column = rows.shares[chosen // len(columns)], columns.shares[chosen % len(columns)]  # (B,H), (B,W)
    return (row.unsqueeze(-1) * column.unsqueeze(-2)).float()  # (B,H,W)


def _everywhere(evidence: Tensor, rows: Profiles, columns: Tensor) -> Tensor:
    """The best pair of profiles (B,), numbered row by row: every pair is tried."""
    strength = rows.shares @ evidence.to(columns) @ columns.T  # (B,P,Q), as profiles sum to 1
    return strength.flatten(1).argmax(1)


def _in_their_box(evidence: Tensor, rows: Profiles, columns: Tensor) -> Tensor:
    """The same where only row profiles that meet the evidence are tried: a fifth of the work, for a CPU."""
    spans = _span(evidence.any(2))
    tried = [rows.meeting(top, bottom) if top < bottom else (0, 1) for top, bottom in spans]
    along = torch.cat([
        rows.shares[first:last, top:bottom] @ mask[top:bottom].to(columns)
        for (first, last), (top, bottom), mask in zip(tried, spans, evidence)
    ])  # (Σp,W)  # fmt: skip
    # One product with all columns, as :func:`_everywhere` has it: of equal strengths rounding then picks the same one.
    strength = along @ columns.T  # (Σp,Q)
    parts = torch.split(strength, [last - first for first, last in tried])  # (p,Q) each
    return torch.stack([first * len(columns) + part.argmax() for (first, _), part in zip(tried, parts)])  # (B,)


def _span(present: Tensor) -> list[tuple[int, int]]:
    """From where to where (end excluded) each row of ``present`` (B,L) bool is True; (L, 0) where it is nowhere."""
    places = torch.arange(present.shape[1])  # (L,)
    first = torch.where(present, places, present.shape[1]).amin(1)  # (B,)
    last = torch.where(present, places + 1, 0).amax(1)  # (B,)
    return list(zip(first.tolist(), last.tolist()))


@dataclass(frozen=True)
class Profiles:
    """Profiles over one axis, in an order in which those that meet a stretch of pixels lie together."""

    shares: Tensor
    """(P,H) in float64; each sums to 1."""
    starts: list[int]
    """The first pixel of each; it never rises."""
    reaches: list[int]
    """The furthest pixel (excluded) of each one and all after it; it never rises."""

    def __len__(self) -> int:
        return len(self.shares)

    @classmethod
    def of(cls, shares: Tensor) -> Profiles:
        """Different profiles in ascending order, as torch.unique returns them: those that start first come last."""
        spans = _span((shares > 0).cpu())
        starts = [first for first, _ in spans]
        reaches = list(accumulate((last for _, last in reversed(spans)), max))[::-1]
        return cls(shares, starts, reaches)

    def meeting(self, first: int, last: int) -> tuple[int, int]:
        """From which to which profile (end excluded) lie all that touch the pixels ``first`` … ``last`` − 1."""
        return (
            bisect_left(self.starts, 1 - last, key=operator.neg),
            bisect_left(self.reaches, -first, key=operator.neg),
        )


@lru_cache(maxsize=16)
def _profiles(
    frames: tuple[tuple[float, ...], ...],
    cells: tuple[Size, ...],
    size: Size,
    most: tuple[int, int],
    device: torch.device,
) -> tuple[Profiles, Profiles] | None:
    """The profiles of these grids over rows and over columns; a model has the same for every batch."""
    placed = [torch.tensor(frame, dtype=torch.float64).view(2, 3) for frame in frames]
    along = [geometry.cell_profiles(frame, each, size) for frame, each in zip(placed, cells)]
    upright = [each for each in along if each is not None]
    if len(upright) < len(along):
        return None
    rows, columns = (_products([each[axis].to(device) for each in upright], *most) for axis in (0, 1))  # (P,H), (Q,W)
    return None if rows is None or columns is None else (Profiles.of(rows), Profiles.of(columns))


def _products(profiles: Sequence[Tensor], most: int, overlap: int) -> Tensor | None:
    """Every different product of one profile of each grid (c,H) that is not zero, summing to 1: (P,H) in float64."""
    found = profiles[0].new_ones(1, profiles[0].shape[1])
    for each in profiles:
        if len(found) * len(each) > most * overlap:
            return None
        found = (found.unsqueeze(1) * each).flatten(0, 1)  # (P·c,H)
        found = found[found.sum(1) > 0]
        found = torch.unique(found / found.sum(1, keepdim=True), dim=0)  # (P,H)
    return found if len(found) <= most else None
