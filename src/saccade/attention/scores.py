"""Attention scores: how well each cell of a feature map fits a query.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393); layer sizes from its authors' code.

=========  ==============================================================
Eq. (2)    s_ij = g_att(f_ij, q): :class:`AdditiveScorer` with context 1
Eq. (9)    s_ij = g_att(f_ij, F_ij, q), F the (2δ+1)² neighbourhood: context 2δ+1
=========  ==============================================================

Deviations from the paper: none. It leaves g_att open; here features and query are each mapped to ``hidden`` channels,
**added**, rectified and read out by one linear unit, as in the released code; other papers take another ``activation``
than the rectifier.

Several queries of one feature map share what does not depend on them. Call :meth:`AdditiveScorer.project_features` once
and :meth:`AdditiveScorer.project_queries` with all queries; :meth:`AdditiveScorer.score_all` takes both.

Axes: B examples, K queries of each, C channels, D hidden, H and W cells.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.errors import ConfigError, ShapeError


class AdditiveScorer(nn.Module):
    """g_att: features (B,C,H,W) and a query vector (B,Q) → scores (B,H,W).

    Args:
        channels: C of the features.
        query_size: Q of the query vector.
        hidden: D of the space in which they meet.
        context: side of the neighbourhood that each cell may see (odd); 1 looks at the cell alone.
        activation: the non-linearity on the sum of both, which it may change in place.

    >>> scorer = AdditiveScorer(8, 4, hidden=16, context=3)
    >>> scorer(torch.randn(2, 8, 5, 7), torch.randn(2, 4)).shape
    torch.Size([2, 5, 7])
    """

    def __init__(
        self,
        channels: int,
        query_size: int,
        *,
        hidden: int = 32,
        context: int = 1,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        if context < 1 or context % 2 == 0:
            raise ConfigError(f"context: expected an odd side (1, 3, 5 …) so that a cell has a centre, found {context}")
        self.channels, self.query_size, self.activation = channels, query_size, activation
        self.from_features = nn.Conv2d(channels, hidden, context, padding=context // 2)
        self.from_query = nn.Linear(query_size, hidden, bias=False)
        self.to_score = nn.Conv2d(hidden, 1, 1)

    def forward(self, features: Tensor, query: Tensor) -> Tensor:
        """Scores (B,H,W), one for each cell."""
        check_features(features, self.channels)
        check_query(query, self.query_size, features)
        return self.score_projected(self.from_features(features), query)  # from_features: (B,D,H,W)

    def score_projected(self, seen: Tensor, query: Tensor) -> Tensor:
        """The scores (B,H,W) of what ``from_features`` made of the features (B,D,H,W), which knows no query yet."""
        asked = self.from_query(query)[:, :, None, None]  # (B,D,1,1)
        scores: Tensor = self.to_score(self.activation(seen + asked))  # (B,1,H,W)
        return scores.squeeze(1)  # (B,H,W)

    def project_features(self, features: Tensor) -> Tensor:
        """What of the scores does not depend on the query: (B,C,H,W) → (B,H,W,D)."""
        seen: Tensor = self.from_features(features)
        return seen.permute(0, 2, 3, 1)

    def project_queries(self, queries: Tensor) -> Tensor:
        """What of the scores depends on the queries (…,Q) alone: (…,D)."""
        asked: Tensor = self.from_query(queries)
        return asked

    def score_all(self, seen: Tensor, asked: Tensor) -> Tensor:
        """The scores of what was seen (B,H,W,D) for several queries that were asked (B,K,D): (B,K,H,W)."""
        bent = self.activation(seen.unsqueeze(1) + asked[:, :, None, None])  # (B,K,H,W,D)
        # the last axis lies together in memory, where a product with one vector beats a convolution with one channel
        scores = F.linear(bent.flatten(0, 3), self.to_score.weight.flatten(1), self.to_score.bias)  # (BKHW,1)
        return scores.reshape(bent.shape[:-1])  # (B,K,H,W)


def spatial_softmax(scores: Tensor) -> Tensor:
    """Eq. (3): α_ij = softmax over all cells; scores (…,H,W) → weights (…,H,W)."""
    return torch.softmax(scores.flatten(-2), dim=-1).reshape(scores.shape)


def check_features(features: Tensor, channels: int) -> None:
    """Refuse anything that is not a feature map with ``channels`` channels."""
    if features.dim() != 4 or features.shape[1] != channels:
        raise ShapeError("features", f"(B,{channels},H,W)", features.shape)


def check_query(query: Tensor, query_size: int, features: Tensor) -> None:
    """Refuse anything that is not one query vector of ``query_size`` for each feature map."""
    if query.dim() != 2 or query.shape[-1] != query_size:
        raise ShapeError("query", f"(B,{query_size})", query.shape)
    if query.shape[0] != features.shape[0]:
        raise ShapeError("query", f"({features.shape[0]},{query_size}), one for each feature map", query.shape)
