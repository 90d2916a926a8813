"""Episodic attention, Kumar et al. (2016): gate features, gates and the attention GRU by hand and in their limits."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from saccade.attention.episodes import AttentionGRU, EpisodeGate, WeightedSum, gates
from saccade.errors import ShapeError

Near = Callable[..., None]


def wide(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def features(gate: EpisodeGate, fact: Tensor, memory: Tensor, question: Tensor) -> Tensor:
    """Eq. (5), for one fact, memory and question (n,): (7n+2,)."""
    c, m, q, w = fact, memory, question, gate.bilinear
    return torch.cat([c, m, q, c * q, c * m, (c - q).abs(), (c - m).abs(), (c @ w @ q)[None], (c @ w @ m)[None]])


def scored(gate: EpisodeGate, facts: Tensor, memory: Tensor, question: Tensor) -> Tensor:
    return gate.score(gate.prepare(facts, question), memory)


def test_every_feature_by_hand(assert_near: Near) -> None:
    """c = (1, 2), m = (3, −1), q = (0, 4), W = (1 2; 3 4): cᵀW = (7, 10), so cᵀWq = 40 and cᵀWm = 11.

    The layer between passes one feature at a time on, a thousandth of it; tanh is the identity there.
    """
    gate = EpisodeGate(2, 1).double()
    fact, memory, question = ([1.0, 2.0], [3.0, -1.0], [0.0, 4.0])
    parts = [1, 2], [3, -1], [0, 4], [0, 8], [3, -2], [1, 2], [2, 3], [40, 11]
    with torch.no_grad():
        gate.bilinear.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        for layer in (gate.hidden, gate.out):
            layer.bias.zero_()
        gate.out.weight.fill_(1e6)
        for number, value in enumerate(value for part in parts for value in part):
            gate.hidden.weight.copy_(1e-6 * torch.eye(16).double()[number : number + 1])
            given = (torch.tensor([each]).double() for each in ([fact], memory, question))
            assert_near(scored(gate, *given), [[float(value)]], atol=1e-6)


def test_gradients_of_the_gate() -> None:
    gate = EpisodeGate(2, 3).double()
    given = [wide(1, 3, 2, seed=3), wide(1, 2, seed=4), wide(1, 2, seed=5)]
    assert torch.autograd.gradcheck(lambda *each: scored(gate, *each), [each.requires_grad_() for each in given])


def test_gates_by_hand_and_none_where_there_is_no_fact(assert_near: Near) -> None:
    """Scores (log 3, 0, 5) without a third fact: σ gives ¾, ½; softmax ¾, ¼."""
    scores, present = torch.tensor([[math.log(3.0), 0.0, 5.0]]), torch.tensor([[True, True, False]])
    assert_near(gates(scores, present, "sigmoid"), [[0.75, 0.5, 0.0]])
    assert_near(gates(scores, present, "softmax"), [[0.75, 0.25, 0.0]])


def test_given_gates_are_used_as_they_are() -> None:
    given = torch.tensor([[2.0, 0.5]])
    scores, present = torch.zeros(1, 2), torch.ones(1, 2, dtype=torch.bool)
    for norm in ("sigmoid", "softmax"):
        assert torch.equal(gates(scores, present, norm, given), given)
    with pytest.raises(ShapeError, match="weights"):
        gates(scores, present, "sigmoid", given[:, :1])


@pytest.fixture
def attention() -> AttentionGRU:
    torch.manual_seed(0)
    return AttentionGRU(4).double()


def same_weights(attention: AttentionGRU, size: int) -> nn.GRU:
    """PyTorch's GRU with the weights of ``attention``."""
    gru = nn.GRU(size, size, batch_first=True).double()
    gru.load_state_dict({f"{name}_l0": value for name, value in attention.cell.state_dict().items()})
    return gru


def test_one_open_gate_is_one_step(attention: AttentionGRU) -> None:
    """Whichever fact it is, the episode is one step of a GRU to that fact."""
    facts = wide(2, 3, 4)
    gru = same_weights(attention, 4)
    for place in range(3):
        gate = torch.zeros(2, 3).double()
        gate[:, place] = 1
        _, step = gru(facts[:, place : place + 1])
        torch.testing.assert_close(attention(facts, gate), step[0], rtol=0, atol=1e-12)


def test_a_half_open_gate_goes_half_the_way(attention: AttentionGRU) -> None:
    """h = g GRU(c, h) + (1 − g) h, step by step, with another gate for each example."""
    facts, gate = wide(2, 3, 4), torch.rand(2, 3, dtype=torch.float64)
    gru, state = same_weights(attention, 4), torch.zeros(2, 4).double()
    for place in range(3):
        _, step = gru(facts[:, place : place + 1], state.unsqueeze(0).contiguous())
        g = gate[:, place : place + 1]
        state = g * step[0] + (1 - g) * state
    torch.testing.assert_close(attention(facts, gate), state, rtol=0, atol=1e-12)


def test_gradients_of_an_episode() -> None:
    attention = AttentionGRU(2).double()
    given = [wide(1, 3, 2), torch.rand(1, 3, dtype=torch.float64)]
    assert torch.autograd.gradcheck(attention, [each.requires_grad_() for each in given])


def test_a_weighted_sum_by_hand(assert_near: Near) -> None:
    """¼ (1, 2) + ¾ (3, −2) = (2.5, −1)."""
    assert_near(WeightedSum()(torch.tensor([[[1.0, 2.0], [3.0, -2.0]]]), torch.tensor([[0.25, 0.75]])), [[2.5, -1.0]])
