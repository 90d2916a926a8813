"""Attention rollout: all layers multiplied into one map (Abnar and Zuidema 2020, arXiv:2005.00928).

Derived, not used: no such weights are in the model. Each layer counts as ½ A + ½ I, its mean over heads and what the
residual connection passes on; the product of all layers says how much of each patch could reach a token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.tracing.attention_calls import AttentionCall

_ROWS = 128
"""Query rows at a time: heads times rows times keys is never held for all rows."""


class Rollout:
    """Takes in one layer after the other; holds (B,N,N)."""

    def __init__(self) -> None:
        self._product: Tensor | None = None

    def add(self, call: AttentionCall, batch: int) -> None:
        """R ← ½ A R + ½ R; A is the mean over heads of a layer in which every token looks at every token."""
        rows = torch.split(torch.arange(call.queries, device=call.source.device), _ROWS)
        mean = torch.cat([call.rows(batch, part).mean(1) for part in rows], 1)  # (B,N,N)
        before = self._product
        if before is None:
            before = torch.eye(call.keys, dtype=mean.dtype, device=mean.device).expand(batch, -1, -1)
        self._product = (mean @ before).add_(before).mul_(0.5)  # (B,N,N)

    def of(self, start: Tensor | None, prefix: int, *, has_class: bool) -> Tensor | None:
        """(B,cells): the share of each patch; None where no layer was added.

        Args:
            start: (B,N) weights on the last layer's tokens; None: the class token, or all patches evenly.
            prefix: tokens before the patches.
            has_class: whether the first of these is the class token.
        """
        if self._product is None:
            return None
        if start is not None:
            reached = (start.unsqueeze(1).to(self._product) @ self._product).squeeze(1)  # (B,N)
        else:
            reached = self._product[:, 0] if has_class else self._product[:, prefix:].mean(1)  # (B,N)
        return reached[:, prefix:].clone()
