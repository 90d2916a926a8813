"""Losses of a network that zooms: each scale classifies, and each scale must be surer than the one before it.

Paper: Fu et al., "Look Closer to See Better: Recurrent Attention Convolutional Neural Network", CVPR 2017 (RA-CNN).

============  ========================================================================  ======================
Eq. (8)       L = Σ_s L_cls(Y^(s), Y*) + Σ_s L_rank(p_t^(s), p_t^(s+1))                 :func:`scale_losses`
Eq. (9)       L_rank = max(0, p_t^(s) − p_t^(s+1) + margin), margin 0.05                :func:`rank_loss`
Section 3.3   before that, a region of half the side round the strongest response       :func:`proposal_loss`
============  ========================================================================  ======================

p_t is the **probability** of the true class; public ports that rank raw logits compare numbers without a common unit.
The two sums of Eq. (8) are taught in turn, with the parts of the other frozen: a network that could lower its own p_t
at the coarse scale would meet the ranking without looking closer.

Deviations: proposals may learn another region (``target: responses``), the square in which a network responds more
than on average (:func:`saccade.attention.zoom.responding_region`). The idea is that of Wei et al., "Selective
Convolutional Descriptor Aggregation for Fine-Grained Image Retrieval", 2017 (SCDA), with centroid and spread in place
of the largest connected part. The strongest of 4 × 4 cells is too coarse to say where a bird is, and a region of fixed
side cuts large birds.

p_t^(s) of the coarser scale is a constant in Eq. (9). Scale 2 is the finer one of its first pair and the
coarser one of its second. With a gradient there, the second pair moves the crop of scale 2 off what it should show,
and p_t of both scales falls.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

MARGIN = 0.05  # by how much each scale is to be surer than the one before it


def scale_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Σ_s L_cls of Eq. (8): the mean cross-entropy of each scale: logits (B,S,K), labels (B,) → (S,)."""
    scales = logits.shape[1]
    each = F.cross_entropy(logits.flatten(0, 1), labels.repeat_interleave(scales), reduction="none")  # (B·S,)
    return each.reshape(-1, scales).mean(0)  # (S,)


def true_class_probability(logits: Tensor, labels: Tensor) -> Tensor:
    """p_t (B,S) of logits (B,S,K) and labels (B,)."""
    index = labels[:, None, None].expand(-1, logits.shape[1], 1)  # (B,S,1)
    return logits.softmax(-1).gather(2, index).squeeze(2)


def rank_loss(probability: Tensor, margin: float = MARGIN) -> Tensor:
    """Eq. (9), summed over neighbouring scales, the mean of a batch: p_t (B,S) → a scalar; teaches the finer of each.

    >>> import torch
    >>> round(float(rank_loss(torch.tensor([[0.5, 0.6, 0.4]]))), 6)
    0.25
    """
    return (probability[:, :-1].detach() - probability[:, 1:] + margin).clamp(min=0).sum(1).mean()


def proposal_loss(boxes: Tensor, targets: Tensor) -> Tensor:
    """Smooth L1 between boxes (B,…,3) and the regions they are to be, summed over the three numbers: a scalar."""
    each = F.smooth_l1_loss(boxes, targets, reduction="none", beta=0.1)  # (B,…,3)
    return each.sum(-1).mean()
