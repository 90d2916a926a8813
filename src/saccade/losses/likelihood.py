"""Likelihood losses: the negative log-probability of the right answer, or of several right answers."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    """Mean of −log p(label): logits (B,K), label (B,) → scalar."""
    return F.cross_entropy(logits, label)


def binary_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Σ over answers of −log p(right or not), mean over examples: logits (B,K), labels (B,K) 0 or 1 → scalar.

    The answers are independent: p(answer) = σ(logit). They are summed, not averaged, so that the loss of an example is
    the negative log-likelihood of its set of answers, and the few that are true do not fade as answers are added.
    """
    return -log_likelihood_of_set(logits, labels).mean()


def log_likelihood_of_set(logits: Tensor, labels: Tensor) -> Tensor:
    """Logarithm of the probability of exactly this set of answers, Σ_a log σ(±logit): (…,K), (…,K) → (…)."""
    return -F.binary_cross_entropy_with_logits(logits, labels.expand_as(logits), reduction="none").sum(-1)
