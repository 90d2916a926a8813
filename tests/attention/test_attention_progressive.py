"""Progressive attention, Eq. (5), (6) and (9) of Seo et al. (2016): gates by hand, as loops, and by what they see."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from saccade.attention import AdditiveScorer, ProgressiveAttention

Near = Callable[..., None]


def with_scores(gate: ProgressiveAttention, scores: Tensor) -> ProgressiveAttention:
    """The same gate, its scorer replaced by given scores."""
    gate.scorer.forward = lambda features, query: scores  # type: ignore[method-assign]
    return gate


def filled(scorer: AdditiveScorer, value: float) -> AdditiveScorer:
    """The scorer with ``value`` as its every weight, and no biases."""
    for name, parameter in scorer.named_parameters():
        nn.init.constant_(parameter, 0.0 if name.endswith("bias") else value)
    return scorer


def test_equations_5_and_6_by_hand(assert_near: Near) -> None:
    """Odds 1, 3, 1/3 and 4 to one: α = 1/2, 3/4, 1/4, 4/5. Each multiplies its cell in both channels."""
    odds = torch.tensor([[[1.0, 3.0], [1 / 3, 4.0]]])
    gate = with_scores(ProgressiveAttention(2, 1), odds.log())
    features = torch.tensor([[[[10.0, 20.0], [40.0, 5.0]], [[-2.0, 0.0], [4.0, 1.0]]]])
    attended = gate.attend(features, torch.zeros(1, 1))
    assert_near(attended.weights, [[[0.5, 0.75], [0.25, 0.8]]])
    assert_near(attended.context, [[[[5.0, 15.0], [10.0, 4.0]], [[-1.0, 0.0], [1.0, 0.8]]]])
    assert_near(attended.scores, odds.log())


def test_equation_9_by_hand(assert_near: Near) -> None:
    """All weights 1 on cells f = (1, 2, 4), query 1: without context s = f + 1, with it the sum of neighbours + 1.

    Without: 2, 3, 5. With: 1 + 2 = 3, 1 + 2 + 4 = 7, 2 + 4 = 6, and 1 more each: 4, 8, 7.
    """
    features, query = torch.tensor([[[[1.0, 2.0, 4.0]]]]), torch.ones(1, 1)
    for context, expected in ((1, [2.0, 3.0, 5.0]), (3, [4.0, 8.0, 7.0])):
        gate = ProgressiveAttention(1, 1, hidden=1, context=context)
        filled(gate.scorer, 1.0)
        attended = gate.attend(features, query)
        assert_near(attended.scores, [[expected]])
        assert_near(attended.weights, torch.tensor([[expected]]).sigmoid())


@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 3]),
    st.integers(0, 2**31),
)  # fmt: skip
def test_against_loops(batch: int, channels: int, height: int, width: int, context: int, seed: int) -> None:
    torch.manual_seed(seed)
    gate = ProgressiveAttention(channels, 2, hidden=3, context=context).double()
    features = torch.randn(batch, channels, height, width, dtype=torch.float64)
    with torch.no_grad():
        act = gate.attend(features, torch.randn(batch, 2, dtype=torch.float64))
    attended, weights, scores = act.context, act.weights, act.scores
    for b in range(batch):
        for i in range(height):
            for j in range(width):
                alpha = 1 / (1 + (-scores[b, i, j]).exp())
                torch.testing.assert_close(weights[b, i, j], alpha)
                for c in range(channels):
                    torch.testing.assert_close(attended[b, c, i, j], alpha * features[b, c, i, j])


@pytest.mark.parametrize("context", [1, 3])
def test_a_gate_sees_its_context_and_nothing_else(context: int) -> None:
    gate = ProgressiveAttention(3, 2, hidden=64, context=context)
    features = torch.randn(1, 3, 7, 7, requires_grad=True)
    gate.attend(features, torch.randn(1, 2)).weights[0, 3, 3].backward()
    assert features.grad is not None
    seen = (features.grad[0].abs().sum(0) > 0).nonzero().tolist()
    reach = context // 2
    assert seen == [[i, j] for i in range(3 - reach, 4 + reach) for j in range(3 - reach, 4 + reach)]


def test_a_gate_starts_where_it_is_told(assert_near: Near) -> None:
    """The odds of every opening are multiplied alike: by 3 for a start at 3/4; a half leaves what was drawn."""
    features, query = torch.rand(2, 4, 3, 3), torch.rand(2, 3)
    openings = {}
    for start in (0.25, 0.5, 0.75):
        torch.manual_seed(5)
        openings[start] = ProgressiveAttention(4, 3, start=start).attend(features, query).weights
    torch.manual_seed(5)
    drawn = ProgressiveAttention(4, 3).attend(features, query).weights
    assert torch.equal(openings[0.5], drawn)
    odds = drawn / (1 - drawn)
    assert_near(openings[0.75], 3 * odds / (1 + 3 * odds))
    assert_near(openings[0.25], odds / (3 + odds))
