"""Soft attention and gates, Eq. (2)-(6) of Seo et al. (2016), and cross-attention, Vaswani et al. (2017), by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from saccade.attention import CrossAttention, ProgressiveAttention, SoftAttention

Near = Callable[..., None]


def with_scores(attention: SoftAttention, scores: Tensor) -> SoftAttention:
    """The same attention, its scorer replaced by given scores."""
    attention.scorer.forward = lambda features, query: scores  # type: ignore[method-assign]
    return attention


def test_equation_4_by_hand(assert_near: Near) -> None:
    """Weights 0.1, 0.2, 0.3, 0.4 on features (10, 20; 30, 40): 1 + 4 + 9 + 16 = 30; on (0, 0; 0, 5): 2."""
    attention = with_scores(SoftAttention(2, 1), torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]).log())
    features = torch.tensor([[[[10.0, 20.0], [30.0, 40.0]], [[0.0, 0.0], [0.0, 5.0]]]])
    attended = attention.attend(features, torch.zeros(1, 1))
    assert_near(attended.weights, [[[0.1, 0.2], [0.3, 0.4]]])
    assert_near(attended.context, [[30.0, 2.0]])


def test_equation_1_by_hand(assert_near: Near) -> None:
    """Features 0, 1, 2; q = (1, 1, 1, 1) and k = f·(log 3)/2·(1, 1, 1, 1): q·k/√4 = f·log 3, so that odds are 1:3:9."""
    attention = CrossAttention(1, 1, hidden=4)
    with torch.no_grad():
        attention.to_query.weight.fill_(1.0)
        attention.to_key.weight.fill_(math.log(3) / 2)
    features = torch.tensor([[[[0.0, 1.0, 2.0]]]])
    attended = attention.attend(features, torch.ones(1, 1))
    assert_near(attended.scores, [[[0.0, math.log(3), 2 * math.log(3)]]])
    assert_near(attended.weights, [[[1 / 13, 3 / 13, 9 / 13]]])
    assert_near(attended.context, [[21 / 13]])


def test_equations_5_and_6_by_hand(assert_near: Near) -> None:
    """Odds 1, 3, 1/3 and 4 to one: α = 1/2, 3/4, 1/4, 4/5. Each multiplies its cell in both channels."""
    odds = torch.tensor([[[1.0, 3.0], [1 / 3, 4.0]]])
    gate = with_scores(ProgressiveAttention(2, 1), odds.log())
    features = torch.tensor([[[[10.0, 20.0], [40.0, 5.0]], [[-2.0, 0.0], [4.0, 1.0]]]])
    attended = gate.attend(features, torch.zeros(1, 1))
    assert_near(attended.weights, [[[0.5, 0.75], [0.25, 0.8]]])
    assert_near(attended.context, [[[[5.0, 15.0], [10.0, 4.0]], [[-1.0, 0.0], [1.0, 0.8]]]])
    assert_near(attended.scores, odds.log())


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
