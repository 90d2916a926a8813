"""Attention over sentences, by hand and as loops: hops of Sukhbaatar et al. (2015), episodes of Kumar et al. (2016)."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from saccade.attention.episodes import AttentionGRU, EpisodeGate, WeightedSum, gates
from saccade.attention.memory import CODES, SentenceCode, memory_hop

Near = Callable[..., None]

QUERY = torch.tensor([[1.0, 2.0]])  # u
KEYS = torch.tensor([[[math.log(3.0), 0.0], [0.0, 0.0]]])  # uᵀm: log 3 and 0, so that p = ¾, ¼
VALUES = torch.tensor([[[4.0, 8.0], [-4.0, 0.0]]])


def test_equations_1_and_2_by_hand(assert_near: Near) -> None:
    """p = (¾, ¼); o = ¾ (4, 8) + ¼ (−4, 0) = (2, 6)."""
    hop = memory_hop(QUERY, KEYS, VALUES)
    assert_near(hop.scores, [[math.log(3.0), 0.0]])
    assert_near(hop.weights, [[0.75, 0.25]])
    assert_near(hop.context, [[2.0, 6.0]])


def test_linear_start_leaves_the_softmax_out(assert_near: Near) -> None:
    """P = uᵀm = (5, −1): o = 5 (4, 8) − (−4, 0) = (24, 40)."""
    keys = torch.tensor([[[1.0, 2.0], [3.0, -2.0]]])
    hop = memory_hop(QUERY, keys, VALUES, linear=True)
    assert_near(hop.weights, [[5.0, -1.0]])
    assert_near(hop.context, [[24.0, 40.0]])


def test_an_empty_slot_takes_part_unless_it_is_masked(assert_near: Near) -> None:
    """With scores (log 3, 0, 0) the empty slot gets a fifth; masked, nothing."""
    keys, values = (torch.cat([each, torch.zeros(1, 1, 2)], 1) for each in (KEYS, VALUES))
    present = torch.tensor([[True, True, False]])
    assert_near(memory_hop(QUERY, keys, values).weights, [[0.6, 0.2, 0.2]])
    masked = memory_hop(QUERY, keys, values, present=present)
    assert_near(masked.weights, [[0.75, 0.25, 0.0]])
    assert_near(masked.context, [[2.0, 6.0]])


def test_an_empty_memory_gives_nothing_and_no_gradient_that_is_not_finite(assert_near: Near) -> None:
    """Beside a full one, which is read as ever."""
    query = QUERY.repeat(2, 1).requires_grad_()
    keys, values = KEYS.repeat(2, 1, 1).requires_grad_(), VALUES.repeat(2, 1, 1).requires_grad_()
    hop = memory_hop(query, keys, values, present=torch.tensor([[False, False], [True, True]]))
    assert_near(hop.weights, [[0.0, 0.0], [0.75, 0.25]])
    assert_near(hop.context, [[0.0, 0.0], [2.0, 6.0]])
    hop.context.sum().backward()
    for each in (query, keys, values):
        assert each.grad.isfinite().all()
        assert each.grad[0].abs().sum() == 0
        assert each.grad[1].abs().sum() > 0


def coefficient(code: str, k: int, j: int, d: int, words: int, longest: int) -> float:
    """l_kj as it is written: k of d dimensions, word j of a sentence of ``words``, both counted from 1."""
    if code == "bag":
        return 1.0
    if code == "position":
        return (1 - j / words) - (k / d) * (1 - 2 * j / words)
    return 1 + 4 * (k - (d + 1) / 2) * (j - (longest + 1) / 2) / (d * longest)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("d", "longest"), [(1, 1), (2, 3), (5, 4), (20, 7)])
def test_a_sentence_is_the_sum_over_its_words(code: str, d: int, longest: int) -> None:
    """For every length J of a sentence, an empty one among them; a word may come twice."""
    generator = torch.Generator().manual_seed(d)
    embedding = torch.randn(6, d, generator=generator)
    sentence = SentenceCode(code, longest)  # type: ignore[arg-type]
    for words in range(longest + 1):
        ids = torch.zeros(longest, dtype=torch.long)
        ids[:words] = torch.randint(1, 6, (words,), generator=generator)
        expected = torch.zeros(d)
        for k in range(1, d + 1):
            for j in range(1, words + 1):
                expected[k - 1] += coefficient(code, k, j, d, words, longest) * embedding[ids[j - 1], k - 1]
        made = sentence.bags(ids.view(1, 1, -1), 6) @ sentence.matrix(embedding)
        torch.testing.assert_close(made[0, 0], expected, rtol=1e-5, atol=1e-6)


def wide(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


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


@pytest.fixture
def attention() -> AttentionGRU:
    torch.manual_seed(0)
    return AttentionGRU(4).double()


def same_weights(attention: AttentionGRU, size: int) -> nn.GRU:
    """PyTorch's GRU with the weights of ``attention``."""
    gru = nn.GRU(size, size, batch_first=True).double()
    gru.load_state_dict({f"{name}_l0": value for name, value in attention.cell.state_dict().items()})
    return gru


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
