"""Episodic attention of a dynamic memory network: gates over facts, and the recurrent net that they switch.

Paper: Kumar et al., "Ask Me Anything: Dynamic Memory Networks for NLP", 2016 (arXiv:1506.07285), Section 2.3.

===========  ====================================================================================================
Eq. (5)      z(c,m,q) = [c, m, q, c∘q, c∘m, |c−q|, |c−m|, cᵀWq, cᵀWm]     :meth:`EpisodeGate.features`
Eq. (6)      G = σ(W₂ tanh(W₁ z + b₁) + b₂)                               :meth:`EpisodeGate.score`, :func:`gates`
Section 2.3  h_t = g_t GRU(c_t, h_{t−1}) + (1 − g_t) h_{t−1}; e = h_T     :class:`AttentionGRU`
Section 2.3  e = Σ_t g_t c_t, with softmax gates                          :class:`WeightedSum`
===========  ====================================================================================================

With g = 0 everywhere the episode stays at its start; with g = 1 everywhere it is a plain GRU over the facts.

Deviations: the gates may be a softmax over the facts (the paper tries both); then one fact is taken in each pass, and
gates can be taught as a choice between facts.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from saccade.attention.given import given_or_own
from saccade.trace import Look, Norm

GateNorm = Literal["sigmoid", "softmax"]


class EpisodeGate(nn.Module):
    """Scores how much a fact matters to a question, given what is remembered.

    Args:
        size: n of facts, memory and question.
        hidden: size of the layer between.
    """

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.bilinear = nn.Parameter(torch.randn(size, size) / size)  # W of cᵀWq and cᵀWm
        self.hidden = nn.Linear(7 * size + 2, hidden)
        self.out = nn.Linear(hidden, 1)

    def features(self, facts: Tensor, memory: Tensor, question: Tensor) -> Tensor:
        """Z for facts (B,S,n), memory (B,n) and question (B,n): (B,S,7n+2)."""
        m, q = memory.unsqueeze(1).expand_as(facts), question.unsqueeze(1).expand_as(facts)  # (B,S,n)
        likeness = facts @ self.bilinear @ torch.stack([question, memory], -1)  # (B,S,2): cᵀWq, cᵀWm
        parts = [facts, m, q, facts * q, facts * m, (facts - q).abs(), (facts - m).abs(), likeness]
        return torch.cat(parts, -1)

    def score(self, facts: Tensor, memory: Tensor, question: Tensor) -> Tensor:
        """W₂ tanh(W₁ z + b₁) + b₂ for each fact: (B,S)."""
        scores: Tensor = self.out(self.hidden(self.features(facts, memory, question)).tanh())  # (B,S,1)
        return scores.squeeze(-1)


def gates(scores: Tensor, present: Tensor, norm: GateNorm, given: Tensor | None = None) -> Tensor:
    """G (B,S) from scores (B,S); 0 where there is no fact. ``given`` gates take the place of these."""
    masked = scores.masked_fill(~present, -torch.inf)
    return given_or_own(given, masked.sigmoid() if norm == "sigmoid" else masked.softmax(-1))


class AttentionGRU(nn.Module):
    """A GRU over facts whose every step is switched by a gate.

    The GRU is that of the paper: h̃ = tanh(Wx + r∘(Uh) + b), h = z∘h + (1 − z)∘h̃, which is also PyTorch's.

    Args:
        size: n of facts and state.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(size, 3 * size)
        self.state = nn.Linear(size, 3 * size)

    def prepare(self, facts: Tensor) -> Tensor:
        """The part that depends on the facts (B,S,n) alone, once for all passes: (B,S,3n)."""
        prepared: Tensor = self.inputs(facts)
        return prepared

    def forward(self, prepared: Tensor, gate: Tensor, start: Tensor) -> Tensor:
        """The episode e (B,n), from prepared facts (B,S,3n), gates (B,S) and the state before the first (B,n)."""
        if torch.compiler.is_exporting():
            return self._scanned(prepared, gate, start)
        state = start
        for of_fact, g in zip(prepared.unbind(1), gate.unsqueeze(-1).unbind(1)):  # (B,3n), (B,1)
            state = self._step(state, of_fact, g)
        return state

    def _step(self, state: Tensor, of_fact: Tensor, gate: Tensor) -> Tensor:
        return torch.lerp(state, gru_cell(of_fact, self.state(state), state), gate)  # (B,n)

    def _scanned(self, prepared: Tensor, gate: Tensor, start: Tensor) -> Tensor:
        """The same as one loop of the graph that is exported; written out, it would be thousands of nodes."""
        from torch._higher_order_ops.scan import scan

        def step(state: Tensor, fact: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            after = self._step(state, *fact)
            return after, after.clone()

        facts = (prepared.transpose(0, 1), gate.unsqueeze(-1).transpose(0, 1))  # (S,B,3n), (S,B,1)
        episode: Tensor = scan(step, start, facts)[0]
        return episode


class WeightedSum(nn.Module):
    """The other form of an episode: facts, weighted by softmax gates and summed. It has no weights of its own."""

    def prepare(self, facts: Tensor) -> Tensor:
        """The facts (B,S,n) as they are."""
        return facts

    def forward(self, prepared: Tensor, gate: Tensor, start: Tensor) -> Tensor:
        """The episode e (B,n), from facts (B,S,n) and gates (B,S); ``start`` is what an empty sum is added to (B,n)."""
        return start + (prepared * gate.unsqueeze(-1)).sum(1)


def gru_cell(of_input: Tensor, of_state: Tensor, state: Tensor) -> Tensor:
    """One step of a GRU from Wx + b (B,3n), Uh + b (B,3n) and h (B,n); thirds are reset, update, candidate."""
    if state.is_cuda:  # the same in one kernel instead of ten; a story has hundreds of steps
        fused: Tensor = torch.ops.aten._thnn_fused_gru_cell(of_input.contiguous(), of_state, state.contiguous())[0]
        return fused
    reset_x, update_x, new_x = of_input.chunk(3, -1)
    reset_h, update_h, new_h = of_state.chunk(3, -1)
    update = (update_x + update_h).sigmoid()
    candidate = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    return candidate + update * (state - candidate)


def episode_look(name: str, weights: Tensor, scores: Tensor, norm: GateNorm, active: Tensor) -> Look:
    """The look of one pass; its gates feed a recurrent net, so it is no weighted sum of facts."""
    kind: Norm = norm
    return Look(name, "slots", "input", weights, norm=kind, scores=scores, active=active)
