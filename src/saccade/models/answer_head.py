"""From an attended feature to an answer: normalise, drop, one linear layer.

The paper (Seo et al., 2016, Section 5.1) has "a single fc layer for classification"; its authors' released code puts a
BatchNorm and a dropout of one half before it, and so does this.
"""

from __future__ import annotations

from torch import Tensor, nn


class AnswerHead(nn.Module):
    """Attended feature (B,C) → logits (B,K)."""

    def __init__(self, channels: int, answers: int, *, dropout: float = 0.5) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.drop = nn.Dropout(dropout)
        self.classify = nn.Linear(channels, answers)

    def forward(self, feature: Tensor) -> Tensor:
        """Logits (B,K)."""
        logits: Tensor = self.classify(self.drop(self.norm(feature)))
        return logits
