"""What the stacked heads of a probe compute for all members at once, and how they read the question.

Axes as in :mod:`saccade.models.probe_heads`: M heads, B pictures, R questions about them, C channels, D hidden units, K
classes, A questions that are known, H and W cells, N = H·W.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class ExampleQueries(NamedTuple):
    """Questions about the pictures of a batch: several may be about one picture."""

    query: Tensor
    """(R,) number of each question."""
    picture: Tensor
    """(R,) place of its picture in the batch."""


def _tokens(features: Tensor) -> Tensor:
    """The cells in a row: (B,C,H,W) → (B,N,C), without a copy where channels lie together."""
    return features.permute(0, 2, 3, 1).flatten(1, 2)


def products(features: Tensor, weight: Tensor) -> Tensor:
    """Every cell times the matrices (M,D,C) of all members, in one product: (B,N,M,D)."""
    tokens = _tokens(features)
    return (tokens @ weight.flatten(0, 1).T).reshape(*tokens.shape[:2], *weight.shape[:2])


def additive(weights: Mapping[str, Tensor], features: Tensor, asked: ExampleQueries | None) -> Tensor:
    """The scores (M,R,N) of :class:`saccade.attention.scores.AdditiveScorer` for one-hot questions."""
    scorer = "attention.scorer"
    seen = products(features, weights[f"{scorer}.from_features.weight"].flatten(2))  # (B,N,M,D)
    told = weights[f"{scorer}.from_features.bias"][..., None] + weights[f"{scorer}.from_query.weight"]  # (M,D,A)
    read = weights[f"{scorer}.to_score.weight"].flatten(1)  # (M,D)
    if asked is None:
        met = seen + told[..., 0]  # (B,N,M,D)
    else:
        met = seen[asked.picture] + told[..., asked.query].permute(2, 0, 1)[:, None]  # (R,N,M,D)
    scores = (met.relu() * read).sum(-1) + weights[f"{scorer}.to_score.bias"][:, 0]  # (R,N,M)
    return scores.permute(2, 0, 1)


def for_each(products: Tensor, asked: ExampleQueries | None) -> Tensor:
    """Selects from products (B,N,M,A) with a vector for each question those of the asked questions: (M,R,N)."""
    if asked is None:
        return products[..., 0].permute(2, 0, 1)
    return products[asked.picture, :, :, asked.query].permute(2, 0, 1)


def for_question(values: Tensor, query: Tensor | None) -> Tensor:
    """Selects from values (B,A,…) those of the asked question (B,), or of the first if none is named: (B,…)."""
    if query is None:
        return values[:, 0]
    where = query.reshape(-1, *[1] * (values.dim() - 1)).expand(-1, 1, *values.shape[2:])
    return values.gather(1, where).squeeze(1)


def pool(scores: Tensor, features: Tensor, asked: ExampleQueries | None) -> Tensor:
    """Eq. (3) and (4) for all members: scores (M,R,N) and features (B,C,H,W) → contexts (M,R,C)."""
    tokens = _tokens(features)  # (B,N,C)
    if asked is not None:
        tokens = tokens[asked.picture]  # (R,N,C)
    return (scores.softmax(-1).transpose(0, 1) @ tokens).transpose(0, 1)


def maps_of(scores: Tensor, features: Tensor) -> Tensor:
    """Eq. (3) for all members, on the grid: scores (M,R,N) of features (B,C,H,W) → (M,R,H,W)."""
    return scores.softmax(-1).reshape(*scores.shape[:2], *features.shape[2:])


def classified(weights: Mapping[str, Tensor], contexts: Tensor) -> Tensor:
    """The linear layer of each member: (M,B,C) → (M,B,K)."""
    return torch.baddbmm(weights["classify.bias"][:, None], contexts, weights["classify.weight"].transpose(1, 2))
