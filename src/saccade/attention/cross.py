"""Cross-attention: one dot-product head, the query against a key of every cell.

Paper: Vaswani et al., "Attention Is All You Need", 2017 (arXiv:1706.03762), Section 3.2.1.

=========  ==============================================================
Eq. (1)    α = softmax(q·k_ij / √d), context = Σ_ij α_ij v_ij   :meth:`CrossAttention.score`, :func:`attend_with_scores`
=========  ==============================================================

Deviations from the paper: one head; the values are the features themselves, without a projection before or after, so
that the weights are exactly what multiplied the features. Neither projection has a bias: a bias of the keys would add
the same number to all scores of an example, and a one-hot query needs none.

Axes: B examples, C channels, D the width of keys, H and W cells.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.attention.scores import check_features, check_query
from saccade.attention.soft import CellAttention


class CrossAttention(CellAttention):
    """Features (B,C,H,W) and a query vector (B,Q) → context (B,C) and the :class:`~saccade.trace.Look`.

    >>> attention = CrossAttention(8, 4)
    >>> context, look = attention(torch.randn(2, 8, 5, 7), torch.randn(2, 4))
    >>> context.shape, look.weights.shape
    (torch.Size([2, 8]), torch.Size([2, 5, 7]))
    """

    def __init__(self, channels: int, query_size: int, *, hidden: int = 32) -> None:
        super().__init__()
        self.channels, self.query_size = channels, query_size
        self.to_query = nn.Linear(query_size, hidden, bias=False)
        self.to_key = nn.Conv2d(channels, hidden, 1, bias=False)
        self.scale = hidden**-0.5

    def score(self, features: Tensor, query: Tensor) -> Tensor:
        """q·k / √d: (B,H,W)."""
        check_features(features, self.channels)
        check_query(query, self.query_size, features)
        asked = self.to_query(query)  # q: (B,D)
        keys = self.to_key(features)  # k: (B,D,H,W)
        scores: Tensor = torch.einsum("bd,bdhw->bhw", asked, keys) * self.scale  # (B,H,W)
        return scores
