"""Losses of models that answer questions: one dataclass for each, by the name that a recipe uses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.config import Weight
from saccade.losses.policy import reinforce
from saccade.trace import QuestionOutput

ENTROPY_WEIGHT = 0.002
"""λ of Xu et al. (2015), from their released code: keeps drawn locations from settling early."""


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the answer, whether or not the model draws locations."""

    evidence_weight: Weight = 0.0
    """Weight of the loss that trains the map to lie on the evidence, :mod:`saccade.losses.maps`; 0: no such
    loss."""
    overlap_weight: Weight = 0.0
    """Weight of the loss on what maps of different questions about one picture share, :mod:`saccade.losses.maps`."""


@dataclass(frozen=True)
class Default(CrossEntropy):
    """Cross-entropy of the answer; REINFORCE where the model draws locations in training."""

    entropy: Weight = ENTROPY_WEIGHT
    """λ of the entropy bonus of REINFORCE."""


@dataclass(frozen=True)
class Reinforce(Default):
    """REINFORCE on the locations that the model draws in training; a model that draws none is refused."""


LOSSES: dict[str, type] = {"default": Default, "cross_entropy": CrossEntropy, "reinforce": Reinforce}


def answer_loss(logits: Tensor, label: Tensor) -> Tensor:
    """Cross-entropy of one answer (B,), or of the set of answers (B,K) that hold."""
    return F.cross_entropy(logits, label) if label.dim() == 1 else binary_cross_entropy(logits, label)


def binary_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Σ over answers of −log p(right or not), mean over examples: logits (B,K), labels (B,K) 0 or 1 → scalar.

    The answers are independent: p(answer) = σ(logit). They are summed, not averaged, so that the loss of an example is
    the negative log-likelihood of its set of answers, and the few that are true do not fade as answers are added.
    """
    return -log_likelihood_of_set(logits, labels).mean()


def log_likelihood_of_set(logits: Tensor, labels: Tensor) -> Tensor:
    """Logarithm of the probability of exactly this set of answers, Σ_a log σ(±logit): (…,K), (…,K) → (…)."""
    return -F.binary_cross_entropy_with_logits(logits, labels.expand_as(logits), reduction="none").sum(-1)


def sampled_loss(raw: QuestionOutput, label: Tensor, entropy_weight: float) -> Tensor:
    """REINFORCE on the locations that a model drew, each rewarded with the log-probability of ``label`` there.

    The label is one answer (B,), or a set of answers (B,K).
    """
    logits = raw.sampled_logits  # (B,S,K)
    if label.dim() == 1:
        log_likelihood = torch.take_along_dim(logits.log_softmax(-1), label[:, None, None], dim=-1).squeeze(-1)  # (B,S)
    else:
        log_likelihood = log_likelihood_of_set(logits, label[:, None])  # (B,S)
    return reinforce(log_likelihood, raw.sampled_log_prob, entropy=raw.entropy, entropy_weight=entropy_weight)  # ()
