"""A weighted mean over cells: soft attention with an additive score, and cross-attention with a dot product.

**Soft attention.** Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 3, after Xu et al.
2015.

=========  ==============================================================
Eq. (2)    s_ij = g_att(f_ij, q)              the scorer
Eq. (3)    α_ij = softmax_ij(s)               :func:`saccade.attention.scores.spatial_softmax`
Eq. (4)    f_att = Σ_ij α_ij f_ij             :func:`attend_with_scores`
=========  ==============================================================

Deviations from the paper: none.

**Cross-attention.** Vaswani et al., "Attention Is All You Need", 2017 (arXiv:1706.03762), Section 3.2.1.

=========  ==============================================================
Eq. (1)    α = softmax(q·k_ij / √d), context = Σ_ij α_ij v_ij   :meth:`CrossAttention.score`, :func:`attend_with_scores`
=========  ==============================================================

Deviations from the paper: one head; the values are the features themselves, so the weights are exactly what multiplied
the features. Neither projection has a bias: that of the keys would add the same number to all scores, and a one-hot
query needs none.

Axes: B examples, C channels, D the width of keys, H and W cells.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from saccade.attention.scores import AdditiveScorer, Mechanism, given_or_own, spatial_softmax
from saccade.trace import SOFT, Act


class CellAttention(Mechanism):
    """Soft attention over the cells of a map, whatever scores them: a subclass says :meth:`score`."""

    constants = SOFT

    @abstractmethod
    def score(self, features: Tensor, query: Tensor) -> Tensor:
        """How well each cell of (B,C,H,W) fits the query (B,Q): (B,H,W)."""

    def attend(self, features: Tensor, query: Tensor, /, *, weights: Tensor | None = None) -> Act:
        """The act on a query (B,Q): context (B,C), weights (B,H,W), scores (B,H,W)."""
        return attend_with_scores(self.score(features, query), features, weights)


class SoftAttention(CellAttention):
    """Features (B,C,H,W) and a query vector (B,Q) → context (B,C) and the :class:`~saccade.trace.Look`.

    >>> attention = SoftAttention(8, 4)
    >>> context, look = attention(torch.randn(2, 8, 5, 7), torch.randn(2, 4))
    >>> context.shape, look.weights.sum((1, 2)).round(decimals=4).tolist()
    (torch.Size([2, 8]), [1.0, 1.0])
    """

    def __init__(self, channels: int, query_size: int, *, hidden: int = 32, context: int = 1) -> None:
        super().__init__()
        self.scorer = AdditiveScorer(channels, query_size, hidden=hidden, context=context)

    def score(self, features: Tensor, query: Tensor) -> Tensor:
        """Eq. (2): (B,H,W)."""
        scores: Tensor = self.scorer(features, query)
        return scores


def attend_with_scores(scores: Tensor, features: Tensor, weights: Tensor | None = None) -> Act:
    """Softmax and sum: scores (B,…,H,W) and features (B,C,H,W) → context (B,…,C), weights (B,…,H,W), scores.

    ``weights`` that are given take the place of the softmax.
    """
    weights = given_or_own(weights, spatial_softmax(scores))  # Eq. (3): (B,…,H,W)
    context = torch.einsum("b...hw,bchw->b...c", weights, features)  # Eq. (4): (B,…,C)
    return Act(context, weights, scores, features)


def attend_uniformly(features: Tensor, weights: Tensor | None = None) -> Act:
    """No preference at all, the control: every cell of (B,C,H,W) counts 1/HW, and the context (B,C) is their mean.

    ``weights`` (B,H,W) that are given take the place of 1/HW.
    """
    return attend_with_scores(torch.zeros_like(features[:, 0]).detach(), features, weights)  # nothing was scored


class CrossAttention(CellAttention):
    """Features (B,C,H,W) and a query vector (B,Q) → context (B,C) and the :class:`~saccade.trace.Look`.

    >>> attention = CrossAttention(8, 4)
    >>> context, look = attention(torch.randn(2, 8, 5, 7), torch.randn(2, 4))
    >>> context.shape, look.weights.shape
    (torch.Size([2, 8]), torch.Size([2, 5, 7]))
    """

    def __init__(self, channels: int, query_size: int, *, hidden: int = 32) -> None:
        super().__init__()
        self.to_query = nn.Linear(query_size, hidden, bias=False)
        self.to_key = nn.Conv2d(channels, hidden, 1, bias=False)
        self.scale = hidden**-0.5

    def score(self, features: Tensor, query: Tensor) -> Tensor:
        """q·k / √d: (B,H,W)."""
        vector = self.to_query(query)  # q: (B,D)
        keys = self.to_key(features)  # k: (B,D,H,W)
        scores: Tensor = torch.einsum("bd,bdhw->bhw", vector, keys) * self.scale  # (B,H,W)
        return scores
