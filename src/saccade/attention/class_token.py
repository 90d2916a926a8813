"""Attention of one token over all: how a transformer's class token reads the patches in the last layer.

Paper: Vaswani et al., "Attention Is All You Need", 2017 (arXiv:1706.03762), Eq. (1), with the heads of Section 3.2.2.

    α^h = softmax(q_0^h K^hᵀ / √d)          rows of the class token 0, over itself and all patches                  (1)
    o^h = α^h_0 v^h_0 + Σ_ij α^h_ij v^h_ij  what head h reads                                                       (2)

In the layers before the last, torch computes self-attention in one call (:class:`SelfAttention`); these layers have no
look.

Axes: B examples, N tokens (the class token first), D width, H heads, d = D / H, h and w cells of the patches.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.scores import given_or_own
from saccade.geometry import Size
from saccade.trace import Act


class SelfAttention(nn.Module):
    """Every token reads every token: (B,N,D) → (B,N,D)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_all = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Eq. (1) and (2) for every token."""
        query, key, value = self._split(tokens)  # (B,H,N,d) each
        read = F.scaled_dot_product_attention(query, key, value)  # (B,H,N,d)
        mixed: Tensor = self.mix(read.transpose(1, 2).flatten(2))
        return mixed

    def weights(self, tokens: Tensor) -> Tensor:
        """The weights (B,H,N,N) of all rows: large, and computed for those who ask."""
        query, key, _ = self._split(tokens)
        scores: Tensor = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5  # (B,H,N,N)
        return scores.softmax(-1)

    def class_token(
        self, tokens: Tensor, grid: Size, given: Sequence[Tensor | None] | None = None
    ) -> tuple[Tensor, list[Act]]:
        """What the class token alone gets (B,D), and the act of each head on the patches.

        The weights (B,h,w) of an act lack to 1 what the token gives to itself; its context (B,d) is the sum of Eq. (2)
        over the patches. ``given`` has for each head weights (B,h,w) in place of its own on the patches, or None.
        """
        query, key, value = self._split(tokens)
        scores = torch.einsum("bhd,bhnd->bhn", query[:, :, 0], key) * query.shape[-1] ** -0.5  # (B,H,N)
        rows = scores.softmax(-1)  # Eq. (1): (B,H,N)
        to_itself, weights, cells = rows[..., 0], _on_grid(rows[..., 1:], grid), _on_grid(scores[..., 1:], grid)
        values = _on_grid(value[:, :, 1:].transpose(-2, -1), grid)  # (B,H,d,h,w)
        acts = []
        for head, head_weights in enumerate(given or [None] * self.heads):
            used = given_or_own(head_weights, weights[:, head])  # (B,h,w)
            context = torch.einsum("byx,bdyx->bd", used, values[:, head])  # (B,d)
            acts.append(Act(context, used, cells[:, head], values[:, head]))
        read = torch.stack([act.context for act in acts], 1)  # (B,H,d)
        return self.mix((read + to_itself.unsqueeze(-1) * value[:, :, 0]).flatten(1)), acts  # Eq. (2): (B,D)

    def _split(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        split = self.to_all(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # (3,B,H,N,d)
        query, key, value = split.unbind(0)
        return query, key, value


def _on_grid(cells: Tensor, grid: Size) -> Tensor:
    return cells.reshape(*cells.shape[:-1], *grid)


def attention_rollout(layers: Sequence[Tensor]) -> Tensor:
    """Attention rollout (B,N,N) of the means over the heads of each layer (B,N,N), whose rows sum to 1.

    Each layer counts as ½ A + ½ I, multiplied from the first on; Abnar and Zuidema 2020 (arXiv:2005.00928). Derived: no
    such weights are in the model.

    >>> attention_rollout([torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])]).tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    product = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype, device=layers[0].device).expand_as(layers[0])
    for layer in layers:
        product = 0.5 * (layer @ product + product)  # (B,N,N)
    return product
