"""A loss that trains a map to lie on the evidence: its share there, as in the score ``true_positive_strength``.

With weights A ≥ 0 on cells, nᵢ the evidence that cell i covers and dᵢ all that it covers (of pixels: 1 on the
evidence, and 1), the share of the map on the evidence M and the loss are

    m = Σᵢ Aᵢ nᵢ / Σᵢ Aᵢ dᵢ                                                                                        (1)
    L = -log m                                                                                                    (2)

the mean over the examples that have evidence. (2) is the cross-entropy between "on M" and the normalised map. It asks
for attention on M and leaves open where on M. A loss of answers adds ``evidence_weight`` · L.

Axes: B examples, h and w cells or pixels.
"""

from __future__ import annotations

from torch import Tensor

from saccade.errors import ShapeError

TINY = 1e-8
"""Added to both sums, so that a map of zeros, or one that misses M, has a finite loss."""


def evidence_loss(weights: Tensor, on_evidence: Tensor, everywhere: Tensor) -> Tensor:
    """Eq. (2), a scalar; 0 where no example has evidence.

    >>> import torch
    >>> weights, on = torch.tensor([[[0.25, 0.75]]]), torch.tensor([[[1.0, 0.0]]])
    >>> round(float(evidence_loss(weights, on, torch.ones(1, 1, 2)).exp()), 4)
    4.0

    Args:
        weights: (B,h,w) ≥ 0, normalised or not.
        on_evidence: (B,h,w) nᵢ.
        everywhere: (B,h,w) or (1,h,w) dᵢ.
    """
    if on_evidence.shape != weights.shape:
        raise ShapeError("on_evidence", f"{tuple(weights.shape)} as the weights", on_evidence.shape)
    weights, on_evidence, everywhere = (each.float() for each in (weights, on_evidence, everywhere))
    hit = (weights * on_evidence).sum((1, 2)) + TINY  # (B,)
    total = (weights * everywhere).sum((1, 2)) + TINY  # (B,)
    known = (on_evidence.flatten(1).sum(1) > 0).to(hit.dtype)  # (B,)
    return -((hit.log() - total.log()) * known).sum() / known.sum().clamp(min=1)
