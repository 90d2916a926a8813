"""The best map that a product of grids allows: the exact bound of true-positive strength, one cell chosen on each grid.

A map that is a product of K grids, each projected onto the picture, is ``Πₖ Σ_c w_kc · h_kc(x)`` with weights ≥ 0 and
the projected cells ``h_kc``. With all grids fixed but one, true-positive strength is a ratio of two linear functions of
that grid's weights, and a ratio of sums never exceeds the largest ratio of its parts: the best single cell of that grid
does at least as well. This holds for each grid in turn. So some choice of *one cell on each grid* reaches the most that
any weights can, and trying every choice gives the exact bound.

A projected cell is the product of a profile over rows and a profile over columns. Cells that do not overlap give an
empty product. That leaves a few hundred different profiles on each axis, and two matrix products try them all.

Axes: B pictures, H and W pixels, P profiles over rows, Q profiles over columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade import geometry
from saccade.geometry import Size
from saccade.metrics.maps.values import check_mask

MOST_PROFILES = 4096
"""On one axis; grids that overlap in more ways have no bound here."""
MOST_OVERLAP = 256
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
        more than :data:`MOST_PROFILES` profiles on an axis.
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
    along = [geometry.cell_profiles(frame, each, size) for frame, each in zip(frames, cells)]
    upright = [each for each in along if each is not None]
    if len(upright) < len(along):
        return None
    rows, columns = (_products([each[axis].to(evidence.device) for each in upright]) for axis in (0, 1))  # (P,H), (Q,W)
    if rows is None or columns is None:
        return None
    best = []
    for part in evidence.split(max(1, _CELLS_AT_ONCE // (len(rows) * len(columns)))):
        strength = rows @ part.to(rows) @ columns.T  # (b,P,Q), as profiles sum to 1
        best.append(strength.flatten(1).argmax(1))  # (b,)
    chosen = torch.cat(best)  # (B,)
    row, column = rows[chosen // len(columns)], columns[chosen % len(columns)]  # (B,H), (B,W)
    return (row.unsqueeze(-1) * column.unsqueeze(-2)).float()  # (B,H,W)


def _products(profiles: Sequence[Tensor]) -> Tensor | None:
    """Every different product of one profile of each grid (c,H) that is not zero, summing to 1: (P,H) in float64."""
    found = profiles[0].new_ones(1, profiles[0].shape[1])
    for each in profiles:
        if len(found) * len(each) > MOST_PROFILES * MOST_OVERLAP:
            return None
        found = (found.unsqueeze(1) * each).flatten(0, 1)  # (P·c,H)
        found = found[found.sum(1) > 0]
        found = torch.unique(found / found.sum(1, keepdim=True), dim=0)  # (P,H)
    return found if len(found) <= MOST_PROFILES else None
