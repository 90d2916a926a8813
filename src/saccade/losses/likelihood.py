"""Likelihood losses: how surprised a model is by the right answer."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from saccade.errors import ShapeError


def cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    """Mean of −log p(label): logits (B,K), label (B,) → scalar."""
    if logits.dim() != 2:
        raise ShapeError("logits", "(B,K)", logits.shape)
    if label.shape != logits.shape[:1]:
        raise ShapeError("label", f"({logits.shape[0]},) for logits {tuple(logits.shape)}", label.shape)
    return F.cross_entropy(logits, label)
