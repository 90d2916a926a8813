"""Episodic attention of a dynamic memory network: gates over facts, and the recurrent net that they switch.

Paper: Kumar et al., "Ask Me Anything: Dynamic Memory Networks for NLP", 2016 (arXiv:1506.07285), Section 2.3.

===========  ====================================================================================================
Eq. (5)      z(c,m,q) = [c, m, q, c∘q, c∘m, |c−q|, |c−m|, cᵀWq, cᵀWm]     :class:`EpisodeGate`
Eq. (6)      G = σ(W₂ tanh(W₁ z + b₁) + b₂)                               :meth:`EpisodeGate.score`, :func:`gates`
Section 2.3  h_t = g_t GRU(c_t, h_{t−1}) + (1 − g_t) h_{t−1}; e = h_T     :class:`AttentionGRU`
Section 2.3  e = Σ_t g_t c_t, with softmax gates                          :class:`WeightedSum`
===========  ====================================================================================================

With g = 0 everywhere the episode stays at its start; with g = 1 everywhere it is a plain GRU over the facts.

Deviations: the gates may be a softmax over the facts (the paper tries both); then one fact is taken in each pass, and
gates can be taught as a choice between facts.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from saccade.attention.scores import given_or_own

GateNorm = Literal["sigmoid", "softmax"]


class PreparedFacts(NamedTuple):
    """What gates need of facts and question, the same in every pass."""

    facts: Tensor  # c (B,S,n)
    likeness: Tensor  # cᵀW (B,S,n)
    inner: Tensor  # the part of W₁ z + b₁ without the memory (B,S,h)


class EpisodeGate(nn.Module):
    """Scores how much a fact matters to a question, given what is remembered; n = ``size``, h = ``hidden``.

    W₁ z is a sum over the parts of z. Parts without the memory are multiplied once, not in every pass.
    """

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.bilinear = nn.Parameter(torch.randn(size, size) / size)  # W of cᵀWq and cᵀWm
        self.hidden = nn.Linear(7 * size + 2, hidden)  # W₁ (h,7n+2), b₁
        self.out = nn.Linear(hidden, 1)  # W₂, b₂

    def prepare(self, facts: Tensor, question: Tensor) -> PreparedFacts:
        """What is the same in every pass, for facts (B,S,n) and questions (B,n)."""
        c, _, q, c_q, _, c_minus_q, _, like_q, _ = self._blocks()
        likeness = facts @ self.bilinear  # (B,S,n)
        inner = _compared(facts, likeness, question, [c_q, c_minus_q, like_q]) + facts @ c.T  # (B,S,h)
        return PreparedFacts(facts, likeness, inner + (question @ q.T + self.hidden.bias).unsqueeze(1))

    def score(self, ready: PreparedFacts, memory: Tensor) -> Tensor:
        """W₂ tanh(W₁ z + b₁) + b₂ of each fact (B,S), given the memory (B,n)."""
        _, m, _, _, c_m, _, c_minus_m, _, like_m = self._blocks()
        inner = ready.inner + _compared(ready.facts, ready.likeness, memory, [c_m, c_minus_m, like_m])  # (B,S,h)
        scores: Tensor = self.out((inner + (memory @ m.T).unsqueeze(1)).tanh())  # (B,S,1)
        return scores.squeeze(-1)

    def _blocks(self) -> tuple[Tensor, ...]:
        """The columns of W₁ for each part of z, in the order of Eq. (5): (h,n) each, (h,1) for the last two."""
        size = self.bilinear.shape[0]
        return torch.split(self.hidden.weight, [size] * 7 + [1, 1], 1)


def _compared(facts: Tensor, likeness: Tensor, other: Tensor, blocks: list[Tensor]) -> Tensor:
    """[c∘x, |c−x|, cᵀWx] · blocksᵀ (B,S,h), for question or memory x (B,n)."""
    x = other.unsqueeze(1)  # (B,1,n)
    parts = [facts * x, (facts - x).abs(), (likeness * x).sum(-1, keepdim=True)]
    return torch.cat(parts, -1) @ torch.cat(blocks, 1).T


def gates(scores: Tensor, present: Tensor, norm: GateNorm, given: Tensor | None = None) -> Tensor:
    """G (B,S) from scores (B,S); 0 where there is no fact. ``given`` gates take the place of these."""
    masked = scores.masked_fill(~present, -torch.inf)
    return given_or_own(given, masked.sigmoid() if norm == "sigmoid" else masked.softmax(-1))


class AttentionGRU(nn.Module):
    """A GRU over facts whose every step is switched by a gate; facts and state have ``size`` n.

    The GRU is that of the paper: h̃ = tanh(Wx + r∘(Uh) + b), h = z∘h + (1 − z)∘h̃, which is also PyTorch's.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(size, size)

    def forward(self, facts: Tensor, gate: Tensor) -> Tensor:
        """The episode e (B,n), from facts (B,S,n) and gates (B,S); the state before the first fact is 0."""
        state = torch.zeros_like(facts[:, 0])  # (B,n)
        for fact, g in zip(facts.unbind(1), gate.unsqueeze(-1).unbind(1)):  # (B,n), (B,1)
            state = torch.lerp(state, self.cell(fact, state), g)  # (B,n)
        return state


class WeightedSum(nn.Module):
    """The other form of an episode: facts, weighted by softmax gates and summed. It has no weights of its own."""

    def forward(self, facts: Tensor, gate: Tensor) -> Tensor:
        """The episode e (B,n), from facts (B,S,n) and gates (B,S)."""
        return (facts * gate.unsqueeze(-1)).sum(1)
