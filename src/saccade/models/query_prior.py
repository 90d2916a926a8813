"""What the query alone says about the answer, learnt beside what the picture says ("a banana is yellow").

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 5.2 reports Visual Genome "with
prior" and does not say how; here it is a term of the logits, so that the classifier itself still never sees the query.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class QueryPrior(nn.Module):
    """One-hot queries (B,Q) → a term of the logits (B,K), zero before training.

    >>> QueryPrior(4, 3)(torch.eye(4)[:2]).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, queries: int, answers: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(queries, answers))  # W; no random number is drawn for it

    def forward(self, asked: Tensor) -> Tensor:
        """W·q: (B,K)."""
        return asked @ self.weight
