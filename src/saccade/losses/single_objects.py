"""Losses of a classifier of single objects: one object per picture, or each object at its own place.

Paper: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165),
Section 5, "Implementation Details": cross-entropy of the one object of a picture. Ours is what becomes of it where a
picture has several, and where boxes say where each of them is.

Labels (B,M) are numbers of classes, then -1; boxes (B,M,4) that are not known are NaN.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def single_object_loss(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Cross-entropy of the first label (B,M) of each picture that has one, from logits (B,C); ``single_accuracy``."""
    first = labels[:, 0]  # (B,): where labels are shuffled, any of them
    held = (first >= 0).to(logits.dtype)  # (B,)
    each = F.cross_entropy(logits, first.clamp(min=0), reduction="none") * held  # (B,)
    pictures = held.sum().clamp(min=1)
    return {"loss": each.sum() / pictures, "single_accuracy": names_one(logits, labels).sum() / pictures}


def object_loss(logits: Tensor, labels: Tensor, boxes: Tensor) -> dict[str, Tensor]:
    """Cross-entropy of each label (B,M) that has a box (B,M,4), from logits (B,M,C); ``object_accuracy``."""
    right, known = names_each(logits, labels, boxes)  # (B,M) each
    each = F.cross_entropy(logits.transpose(1, 2), labels.clamp(min=0), reduction="none") * known  # (B,M)
    objects = known.sum().clamp(min=1)
    return {"object_loss": each.sum() / objects, "object_accuracy": (right & known).sum() / objects}


def names_one(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether the likeliest class (B,C) is one of the labels (B,M): (B,) bool."""
    return (labels == logits.argmax(-1, keepdim=True)).any(1)


def names_each(logits: Tensor, labels: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Where the likeliest class (B,M,C) is the label (B,M), and where there is a label with a box (B,M,4): bool."""
    return logits.argmax(-1) == labels, (labels >= 0) & ~boxes.isnan().any(-1)
