"""What every score of slots shares: the checks, and how weights become shares.

Axes: B questions, S slots, T looks. Weights are (B,S), finite and ≥ 0. ``present`` (B,S) bool says which slots hold
something; scores are about these alone. A score is (B,), NaN where a question has no such score.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError


def check_weights(weights: Tensor, name: str = "weights") -> Tensor:
    """The weights (B,S) in float64, once they are known to be finite and nowhere negative."""
    if weights.dim() != 2:
        raise ShapeError(name, "(B,S)", weights.shape)
    weights = weights.detach().double()
    if weights.numel() and not bool(((weights >= 0) & weights.isfinite()).all()):
        raise DataError(f"{name}: a weight is negative, infinite or NaN; look at what made it")
    return weights


def check_slots(mask: Tensor, weights: Tensor, name: str) -> Tensor:
    """The mask (B,S), once it is known to be one of the slots of ``weights``."""
    if mask.dtype != torch.bool:
        raise DataError(f"{name}: expected a bool mask, found {mask.dtype}")
    if mask.shape != weights.shape:
        raise ShapeError(name, f"{tuple(weights.shape)} as the weights", mask.shape)
    return mask.to(weights.device)


def shares(weights: Tensor, present: Tensor) -> Tensor:
    """Weights (B,S) as shares of what lies on present slots; NaN in a row without any."""
    kept = weights * present
    total = kept.sum(1, keepdim=True)
    return torch.where(total > 0, kept / total.clamp(min=1e-300), torch.nan)


def where_any(score: Tensor, has: Tensor) -> Tensor:
    """The score (B,) where ``has`` (B,), NaN elsewhere."""
    return torch.where(has, score, torch.nan)
