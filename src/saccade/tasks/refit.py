"""The classifier of a trained head, fitted anew: exactly, to what its maps attend to.

Steps on few pictures leave a noisy classifier, and a small validation split chooses among many such. Given the maps,
the best linear classifier is the minimum of a convex function, as of the linear rival (:mod:`saccade.tasks.rivals`). If
the maps are even, both read the same features.

=======  =========================================================================================
logits   (W + U_q) x + p_q             x = (c - μ) / (σ √C): c is attended, μ and σ of training rows
loss     mean cross-entropy (of several answers that of each) + λ/2 |W|² + λ/2 · mean over rows of |U_q|²
=======  =========================================================================================

L-BFGS minimises the loss from zero. Nothing is drawn. With λ = 1e-3, that of the rival, confidences are too low.

Axes: N rows, C channels, Q questions, K answers.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

DECAY = 3e-4  # λ
STEPS = 100  # Of L-BFGS at most
REMEMBERED = 10  # Steps that L-BFGS keeps: each has the size of all weights
MOST = 20_000  # Rows that are fitted at most
FLAT = 1e-3  # Smallest σ, as a share of the largest


class Readout(NamedTuple):
    """A linear classifier of features (N,C), each with a question."""

    centre: Tensor  # (C,): μ
    spread: Tensor  # (C,): σ
    weight: Tensor  # (K,C) on (c - μ) / σ: W / √C
    terms: Tensor | None  # (Q,K,C): U / √C; None: the same classifier for every question
    bias: Tensor  # (Q,K): p; the same for every question if asked for

    def logits(self, features: Tensor, query: Tensor) -> Tensor:
        """(N,K)."""
        return _logits((features - self.centre) / self.spread, query, self.weight, self.terms, self.bias)


@torch.enable_grad()
def fitted(
    features: Tensor, query: Tensor, label: Tensor, questions: int, answers: int, *, terms: bool, prior: bool
) -> Readout:
    """The classifier of features (N,C), questions (N,) and labels (N,), or (N,K) where several answers may hold.

    ``terms`` and ``prior`` say whether a question has weights and a bias of its own.
    """
    centre, spread = features.mean(0), features.std(0, correction=min(1, len(features) - 1))  # (C,) each
    spread = spread.clamp_min(FLAT * float(spread.max().clamp_min(1e-6)))
    size = features.shape[1]
    inputs = (features - centre) / spread / size**0.5  # (N,C)
    weight = inputs.new_zeros(answers, size).requires_grad_()  # (K,C)
    bias = inputs.new_zeros(questions if prior else 1, answers).requires_grad_()  # (Q|1,K)
    own = inputs.new_zeros(questions, answers, size).requires_grad_() if terms and questions > 1 else None  # (Q,K,C)
    share = torch.bincount(query, minlength=questions) / len(query)  # (Q,)
    learned = [weight, bias, *([] if own is None else [own])]
    optimizer = torch.optim.LBFGS(learned, max_iter=STEPS, history_size=REMEMBERED, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        logits = _logits(inputs, query, weight, own, bias.expand(questions, -1))
        if label.dim() == 1:
            missed = F.cross_entropy(logits, label)
        else:
            missed = F.binary_cross_entropy_with_logits(logits, label.to(logits), reduction="none").sum(1).mean()
        loss: Tensor = missed + DECAY / 2 * weight.square().sum()
        if own is not None:
            loss = loss + DECAY / 2 * (share * own.square().sum((1, 2))).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    weight, bias = weight.detach() / size**0.5, bias.detach().expand(questions, -1)
    return Readout(centre, spread, weight, None if own is None else own.detach() / size**0.5, bias)


def _logits(inputs: Tensor, query: Tensor, weight: Tensor, terms: Tensor | None, bias: Tensor) -> Tensor:
    """(N,K) of standardised features (N,C) and questions (N,)."""
    logits = F.linear(inputs, weight) + bias[query]  # (N,K)
    if terms is None:
        return logits
    for question in torch.unique(query).tolist():
        rows = (query == question).nonzero()[:, 0]
        logits = logits.index_add(0, rows, F.linear(inputs[rows], terms[question]))
    return logits
