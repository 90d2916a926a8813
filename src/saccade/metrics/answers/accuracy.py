"""How often the answer is right: over all examples, and by the size of the object that was asked about."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError

SCALE_EDGES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""Edges of the paper's five bins of object scale; bins are open on the left, except that 0.5 itself is inside."""


class ScaleBin(NamedTuple):
    """Accuracy on the objects of one range of scales."""

    low: float
    high: float
    accuracy: float
    """NaN when no object fell into the bin."""
    n: int


def check_ids(name: str, ids: Tensor, like: Tensor | None = None) -> Tensor:
    """Answer ids (B,) of an integer type, on the device of ``like`` and as long as it."""
    if ids.dim() != 1:
        raise ShapeError(name, "(B,)", ids.shape)
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise DataError(f"{name}: expected integer ids, found {ids.dtype}; take the arg-max of logits first")
    if like is None:
        return ids
    if len(ids) != len(like):
        raise ShapeError(name, f"({len(like)},)", ids.shape)
    return ids.to(like.device)


def correct(answers: Tensor, truth: Tensor) -> Tensor:
    """1.0 where the answer id is the true one, else 0.0: (B,) from two (B,)."""
    answers = check_ids("answers", answers)
    return (answers == check_ids("truth", truth, answers)).float()


def accuracy(answers: Tensor, truth: Tensor) -> float:
    """The share of right answers; NaN for no examples."""
    return float(correct(answers, truth).double().mean())


def accuracy_by_scale(answers: Tensor, truth: Tensor, scales: Tensor) -> tuple[ScaleBin, ...]:
    """Accuracy in the five bins [0.5,1], (1,1.5], (1.5,2], (2,2.5], (2.5,3] of the asked object's scale.

    Args:
        answers: ids (B,).
        truth: ids (B,).
        scales: (B,) in 0.5..3; anything else is a :class:`DataError`, because leaving it out would hide it.
    """
    right = correct(answers, truth).cpu().double()  # (B,)
    if scales.shape != right.shape:
        raise ShapeError("scales", f"({len(right)},)", scales.shape)
    edges = torch.tensor(SCALE_EDGES, dtype=torch.float64)
    at = scales.detach().cpu().double()
    outside = ~((at >= edges[0]) & (at <= edges[-1]))  # NaN is outside too
    if bool(outside.any()):
        index = int(outside.nonzero()[0, 0])
        raise DataError(f"scale of example {index} is {float(at[index]):g}, outside the bins' 0.5 to 3")
    bins = (torch.bucketize(at, edges) - 1).clamp(min=0)  # bucketize: edges[i-1] < x ≤ edges[i]; 0.5 itself into bin 0
    n = torch.bincount(bins, minlength=len(edges) - 1)  # (5,)
    hits = torch.bincount(bins, weights=right, minlength=len(edges) - 1)  # (5,)
    share = hits / n  # 0/0 = NaN: an empty bin has no accuracy
    return tuple(
        ScaleBin(low, high, float(share[i]), int(n[i])) for i, (low, high) in enumerate(itertools.pairwise(SCALE_EDGES))
    )
