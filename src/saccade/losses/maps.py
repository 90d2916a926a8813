"""Losses of maps and crops: on the evidence, apart from one another, and surer from scale to scale.

**Evidence.** With weights A ≥ 0 on cells, nᵢ the evidence that cell i covers and dᵢ all that it covers (of pixels: 1 on
the evidence, and 1), the share of the map on the evidence M, as in the score ``true_positive_strength``, and the loss:

    m = Σᵢ Aᵢ nᵢ / Σᵢ Aᵢ dᵢ                                                                                        (1)
    L = -log m                                                                                                    (2)

the mean over the examples that have evidence. (2) leaves open where on M the map lies. A loss of answers adds
``evidence_weight`` · L.

**Overlap.** With the maps Aᵢ ≥ 0 of k questions about a picture, each divided by its sum, the loss is the mean over all
pairs and pictures of

    o(a, b) = Σₓ min(a(x), b(x)) = 1 − TV(a, b)                                                                  (3)

**Zoom.** Fu et al., "Look Closer to See Better: Recurrent Attention Convolutional Neural Network", CVPR 2017 (RA-CNN):

============  ========================================================================  ======================
Eq. (8)       L = Σ_s L_cls(Y^(s), Y*) + Σ_s L_rank(p_t^(s), p_t^(s+1))                 :func:`scale_losses`
Eq. (9)       L_rank = max(0, p_t^(s) − p_t^(s+1) + margin), margin 0.05                :func:`rank_loss`
Section 3.3   before that, a region of half the side round the strongest response       :func:`proposal_loss`
============  ========================================================================  ======================

p_t is the **probability** of the true class; public ports that rank raw logits compare numbers without a common unit.
The two sums of Eq. (8) are taught in turn, with the parts of the other frozen: a network that could lower its own p_t
at the coarse scale would meet the ranking without looking closer. For the same reason p_t^(s) of the coarser scale is a
constant in Eq. (9): with a gradient there, the second pair would move the crop of scale 2 off what it should show.

Deviation: proposals may learn another region (``target: responses``), the square in which a network responds more than
on average (:func:`saccade.attention.zoom.responding_region`), after Wei et al. 2017 (SCDA) with centroid and spread in
place of the largest connected part. The strongest of 4 × 4 cells is too coarse to say where a bird is.

Axes: B examples, S pictures or scales, k questions about each, h and w cells or pixels, K classes.
"""

from __future__ import annotations

from itertools import combinations

import torch
import torch.nn.functional as F
from torch import Tensor

TINY = 1e-8  # added to both sums, so that a map of zeros, or one that misses M, has a finite loss
MARGIN = 0.05  # by how much each scale is to be surer than the one before it


def evidence_loss(weights: Tensor, on_evidence: Tensor, everywhere: Tensor) -> Tensor:
    """Eq. (2), a scalar; 0 if no example has evidence.

    >>> import torch
    >>> weights, on = torch.tensor([[[0.25, 0.75]]]), torch.tensor([[[1.0, 0.0]]])
    >>> round(float(evidence_loss(weights, on, torch.ones(1, 1, 2)).exp()), 4)
    4.0

    Args:
        weights: (B,h,w) ≥ 0.
        on_evidence: (B,h,w) nᵢ.
        everywhere: (B,h,w) or (1,h,w) dᵢ.
    """
    weights, on_evidence, everywhere = (tensor.float() for tensor in (weights, on_evidence, everywhere))
    hit = (weights * on_evidence).sum((1, 2)) + TINY  # (B,)
    total = (weights * everywhere).sum((1, 2)) + TINY  # (B,)
    has_evidence = (on_evidence.flatten(1).sum(1) > 0).to(hit.dtype)  # (B,)
    return -((hit.log() - total.log()) * has_evidence).sum() / has_evidence.sum().clamp(min=1)


def overlap_loss(maps: Tensor, asks: int) -> Tensor:
    """Eq. (3), a scalar in 0..1.

    >>> maps = torch.tensor([[[1.0, 0.0]], [[1.0, 3.0]]])
    >>> round(float(overlap_loss(maps, asks=2)), 4)
    0.25

    Args:
        maps: (S·k,h,w) ≥ 0; k in a row belong to one picture.
        asks: k, at least 2.
    """
    shares = maps.float().flatten(1)  # (S·k,P)
    shares = (shares / (shares.sum(1, keepdim=True) + TINY)).view(-1, asks, shares.shape[1])  # (S,k,P)
    pairs = [torch.minimum(shares[:, one], shares[:, other]).sum(1) for one, other in combinations(range(asks), 2)]
    return torch.stack(pairs).mean()


def scale_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Σ_s L_cls of Eq. (8): the mean cross-entropy of each scale: logits (B,S,K), labels (B,) → (S,)."""
    scales = logits.shape[1]
    losses = F.cross_entropy(logits.flatten(0, 1), labels.repeat_interleave(scales), reduction="none")  # (B·S,)
    return losses.reshape(-1, scales).mean(0)  # (S,)


def true_class_probability(logits: Tensor, labels: Tensor) -> Tensor:
    """p_t (B,S) of logits (B,S,K) and labels (B,)."""
    index = labels[:, None, None].expand(-1, logits.shape[1], 1)  # (B,S,1)
    return logits.softmax(-1).gather(2, index).squeeze(2)


def rank_loss(probability: Tensor, margin: float = MARGIN) -> Tensor:
    """Eq. (9), summed over neighbouring scales, batch mean: p_t (B,S) → a scalar; teaches the finer of each pair.

    >>> import torch
    >>> round(float(rank_loss(torch.tensor([[0.5, 0.6, 0.4]]))), 6)
    0.25
    """
    return (probability[:, :-1].detach() - probability[:, 1:] + margin).clamp(min=0).sum(1).mean()


def proposal_loss(boxes: Tensor, targets: Tensor) -> Tensor:
    """Smooth L1 between boxes (B,…,3) and their targets, summed over the three numbers: a scalar."""
    losses = F.smooth_l1_loss(boxes, targets, reduction="none", beta=0.1)  # (B,…,3)
    return losses.sum(-1).mean()
