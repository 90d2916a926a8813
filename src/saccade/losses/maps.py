"""Losses of maps: one that trains a map to lie on the evidence, and one that keeps maps of different questions apart.

**Evidence.** The loss is the share of a map on the evidence, as in the score ``true_positive_strength``.

With weights A ≥ 0 on cells, nᵢ the evidence that cell i covers and dᵢ all that it covers (of pixels: 1 on the
evidence, and 1), the share of the map on the evidence M and the loss are

    m = Σᵢ Aᵢ nᵢ / Σᵢ Aᵢ dᵢ                                                                                        (1)
    L = -log m                                                                                                    (2)

the mean over the examples that have evidence. (2) is the cross-entropy between "on M" and the normalised map. It asks
for attention on M and leaves open where on M. A loss of answers adds ``evidence_weight`` · L.

Axes: B examples, h and w cells or pixels.

**Overlap.** What two maps have in common, for different questions about one picture.

With the maps Aᵢ ≥ 0 of k questions about a picture, each divided by its sum, the loss is the mean over all pairs of

    o(a, b) = Σₓ min(a(x), b(x)) = 1 − TV(a, b)                                                                  (3)

and over all pictures. The loss does not say where to look, only that two questions must not share a place. The
gradient reaches the smaller of two weights on a cell, so a map gives up what another question holds more firmly.

Axes: B examples, S pictures, k questions about each, h and w cells or pixels.
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

TINY = 1e-8  # added to both sums, so that a map of zeros, or one that misses M, has a finite loss


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
    weights, on_evidence, everywhere = (each.float() for each in (weights, on_evidence, everywhere))
    hit = (weights * on_evidence).sum((1, 2)) + TINY  # (B,)
    total = (weights * everywhere).sum((1, 2)) + TINY  # (B,)
    known = (on_evidence.flatten(1).sum(1) > 0).to(hit.dtype)  # (B,)
    return -((hit.log() - total.log()) * known).sum() / known.sum().clamp(min=1)


def overlap_loss(maps: Tensor, asks: int) -> Tensor:
    """Eq. (3), a scalar between 0 and 1.

    >>> maps = torch.tensor([[[1.0, 0.0]], [[1.0, 3.0]]])
    >>> round(float(overlap_loss(maps, asks=2)), 4)
    0.25

    Args:
        maps: (S·k,h,w) ≥ 0, normalised or not; k in a row belong to one picture.
        asks: k, at least 2.
    """
    shares = maps.float().flatten(1)  # (S·k,P)
    shares = (shares / (shares.sum(1, keepdim=True) + TINY)).view(-1, asks, shares.shape[1])  # (S,k,P)
    pairs = [torch.minimum(shares[:, one], shares[:, other]).sum(1) for one, other in combinations(range(asks), 2)]
    return torch.stack(pairs).mean()
