"""Maps over sentences that need no model: what attention is compared with. Each is (B,S) and sums to 1."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.metrics.slots.values import shares


def uniform(present: Tensor) -> Tensor:
    """The same weight on every sentence; ``present`` (B,S) bool says which slots hold one."""
    return _even(present.double(), present)


def recency(present: Tensor) -> Tensor:
    """Half the weight on the last sentence, a quarter on the one before, and so on."""
    back = present.sum(1, keepdim=True) - 1 - torch.arange(present.shape[1], device=present.device)  # (B,S)
    return _even(torch.where(present, 0.5 ** back.clamp(min=0).double(), 0.0), present)


def word_overlap(story: Tensor, query: Tensor) -> Tensor:
    """Weight by the number of different words that a sentence shares with the question.

    Every word counts, also "the". Where no sentence shares a word, all are alike.

    Args:
        story: word ids (B,S,J), 0 where there is no word.
        query: word ids (B,Q).
    """
    present = (story != 0).any(-1)  # (B,S)
    is_there = (story.unsqueeze(2) == query[:, None, :, None]).any(-1)  # (B,S,Q): word q of the question is in s
    earlier = query.unsqueeze(1) == query.unsqueeze(2)  # (B,Q,Q)
    is_first = ~earlier.tril(-1).any(-1) & (query != 0)  # (B,Q): a word that is asked twice counts once
    return _even((is_there & is_first.unsqueeze(1)).sum(-1).double(), present)


def _even(weights: Tensor, present: Tensor) -> Tensor:
    """Shares of the weights; without any weight, the same on every sentence."""
    return torch.where((weights.sum(1, keepdim=True) > 0), shares(weights, present), shares(present.double(), present))
