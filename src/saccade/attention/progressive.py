"""Progressive attention: one gate on a feature map; the next layers of the network read the gated map.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 4.

=========  ==============================================================
Eq. (6)    s_ij = g_att(f_ij, q), α_ij = σ(s_ij)   the scorer and the sigmoid of :meth:`ProgressiveAttention.attend`
Eq. (9)    s_ij = g_att(f_ij, F_ij, q)             a gate with context 3
Eq. (5)    f̂_ij = α_ij f_ij                        the product in :meth:`ProgressiveAttention.attend`
=========  ==============================================================

The last attention of the paper, a softmax (Eq. 6, l = L) and a sum (Eq. 8) without context, is
:class:`saccade.attention.SoftAttention`. Eq. (7), the next layer, belongs to the model.

Deviations from the paper: the paper's context is the footprint of the next convolution and pooling together, 4×4 for
3×3 and 2×2 (context 4); the authors' released code has 3×3, and so have the recipes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from saccade.attention.scores import AdditiveScorer, Mechanism, given_or_own
from saccade.trace import GATE, Act


class ProgressiveAttention(Mechanism):
    """Features (B,C,H,W) and a query vector (B,Q) → attended features (B,C,H,W) and the :class:`~saccade.trace.Look`.

    Each cell may see a neighbourhood of side ``context``. The gate is open by about ``start`` before training; near 1
    it lets a pretrained network see what it knows.

    >>> gate = ProgressiveAttention(8, 4, context=3)
    >>> attended, look = gate(torch.randn(2, 8, 5, 7), torch.randn(2, 4))
    >>> attended.shape, look.kind, look.norm
    (torch.Size([2, 8, 5, 7]), 'gate', 'sigmoid')
    """

    look_name = "gate"
    constants = GATE

    def __init__(
        self, channels: int, query_size: int, *, hidden: int = 32, context: int = 1, start: float = 0.5
    ) -> None:
        super().__init__()
        self.scorer = AdditiveScorer(channels, query_size, hidden=hidden, context=context)
        self.open(start)

    @torch.no_grad()
    def open(self, start: float) -> None:
        """Move the bias so that the gate is as far open, about: between 0 and 1, exclusive."""
        self.scorer.to_score.bias.add_(math.log(start / (1 - start)))  # type: ignore[union-attr]  # σ⁻¹(start)

    def shared(self, features: Tensor) -> Tensor:
        """What of the act does not depend on the query, to ask the same features many times: (B,C,H,W) → (B,D,H,W)."""
        projected: Tensor = self.scorer.from_features(features)
        return projected

    def attend(
        self, features: Tensor, query: Tensor, /, projected: Tensor | None = None, *, weights: Tensor | None = None
    ) -> Act:
        """The act as plain tensors: context (B,C,H,W), the map that goes on; weights (B,H,W), scores (B,H,W).

        ``projected`` (B,D,H,W) is of :meth:`shared`, where that was computed already.
        """
        # Eq. (6) left, or Eq. (9): (B,H,W)
        scores = self.scorer(features, query) if projected is None else self.scorer.score_projected(projected, query)
        weights = given_or_own(weights, torch.sigmoid(scores))  # Eq. (6) right: (B,H,W)
        return Act(weights.unsqueeze(1) * features, weights, scores, features)  # Eq. (5): (B,C,H,W)
