"""How far can weights be from the model's own while its answer stays? Far weights that change nothing explain nothing.

Weights a are mixed with others b until the answer's probabilities move by more than a little:

    a(s) = (1 − s)·a + s·b,   TV(a, a(s)) = s·TV(a, b),   TV(p, p(s)) ≤ ε                                        (1)

For each b the largest s is looked for by halving; the score is the largest distance that was found. It is a lower
bound: other weights may lie farther. 0 means that every mixture that was tried changed the answer.

Axes: B questions, h and w cells, A answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from saccade.errors import ShapeError

ALLOWED = 0.01
"""ε of (1)."""
HALVINGS = 4


def variation(one: Tensor, two: Tensor) -> Tensor:
    """Total variation (B,) between rows of shares (B,…)."""
    return 0.5 * (one - two).abs().flatten(1).sum(1)


def farthest(
    weights: Tensor,
    others: Sequence[Tensor],
    probabilities: Callable[[Tensor], Tensor],
    *,
    allowed: float = ALLOWED,
    halvings: int = HALVINGS,
) -> Tensor:
    """The largest distance (B,) of (1), found among mixtures with ``others``.

    Args:
        weights: (B,h,w), that sum to 1.
        others: weights to mix with, (B,h,w) each, that sum to 1.
        probabilities: what the model says with given weights: (B,h,w) → (B,A).
        allowed: ε.
        halvings: steps in which s is looked for, after s = 1 was tried.
    """
    own, best = probabilities(weights), weights.new_zeros(len(weights))  # (B,A), (B,)
    for other in others:
        if other.shape != weights.shape:
            raise ShapeError("others", f"{tuple(weights.shape)}", other.shape)
        far = variation(weights, other)  # (B,)
        low, high = torch.zeros_like(best), torch.ones_like(best)  # s that is known to be allowed, and one to try
        share = high
        for _ in range(halvings + 1):
            mixed = torch.lerp(weights, other, share[:, None, None])
            stays = variation(own, probabilities(mixed)) <= allowed  # (B,)
            low, high = torch.where(stays, share, low), torch.where(stays, high, share)
            share = (low + high) / 2
        best = torch.maximum(best, low * far)
    return best
