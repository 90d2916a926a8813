"""Soft attention, Eq. (2)-(4) of Seo et al. (2016): the context by hand, as loops, and in its limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade import geometry
from saccade.attention import SoftAttention
from saccade.errors import DataError
from saccade.outputs import SOFT, Act
from saccade.trace import AttentionTrace

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


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**31))
def test_against_loops(batch: int, channels: int, height: int, width: int, seed: int) -> None:
    torch.manual_seed(seed)
    attention = SoftAttention(channels, 2, hidden=3).double()
    features = torch.randn(batch, channels, height, width, dtype=torch.float64)
    query = torch.randn(batch, 2, dtype=torch.float64)
    with torch.no_grad():
        act = attention.attend(features, query)
    context, weights, scores = act.context, act.weights, act.scores
    for b in range(batch):
        exponentials = [scores[b, i, j].exp() for i in range(height) for j in range(width)]
        expected = torch.zeros(channels, dtype=torch.float64)
        for i in range(height):
            for j in range(width):
                weight = scores[b, i, j].exp() / sum(exponentials)
                torch.testing.assert_close(weights[b, i, j], weight)
                expected += weight * features[b, :, i, j]
        torch.testing.assert_close(context[b], expected)


def test_gradients() -> None:
    torch.manual_seed(3)
    attention = SoftAttention(2, 3, hidden=4).double()
    features = torch.randn(2, 2, 2, 3, dtype=torch.float64, requires_grad=True)
    query = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda f, q: attention.attend(f, q).context, (features, query))


def test_one_huge_score_meets_the_arg_max() -> None:
    features = torch.randn(1, 4, 3, 3)
    scores = torch.randn(1, 3, 3)
    scores[0, 1, 2] = 1e4
    attended = with_scores(SoftAttention(4, 1), scores).attend(features, torch.zeros(1, 1))
    assert torch.equal(attended.context, features[:, :, 1, 2])


def test_equal_scores_give_the_mean() -> None:
    features = torch.randn(2, 4, 3, 5)
    attended = with_scores(SoftAttention(4, 1), torch.full((2, 3, 5), 7.0)).attend(features, torch.zeros(2, 1))
    torch.testing.assert_close(attended.context, features.mean((2, 3)))


def test_shuffled_cells_keep_the_context() -> None:
    attention = SoftAttention(4, 3)
    features, query, order = torch.randn(2, 4, 3, 5), torch.randn(2, 3), torch.randperm(15)
    shuffled = features.flatten(2)[..., order].reshape(features.shape)
    before, after = attention.attend(features, query), attention.attend(shuffled, query)
    torch.testing.assert_close(after.weights.flatten(1), before.weights.flatten(1)[:, order])
    torch.testing.assert_close(after.context, before.context)


def test_the_look_is_what_was_used(assert_near: Near) -> None:
    attention = SoftAttention(4, 3, context=3)
    features = torch.randn(2, 4, 5, 6)
    frame = geometry.scale_shift((16, 16), (15, 15))
    context, look = attention(features, torch.randn(2, 3), frame=frame, name="stage4")
    look.validate()
    assert (look.name, look.kind, look.role, look.norm) == ("stage4", "soft", "multiplier", "softmax")
    assert look.frame is frame
    assert look.scores is not None
    assert_near(look.rebuild(features), context)
    assert_near(torch.softmax(look.scores.flatten(1), 1).reshape(2, 5, 6), look.weights)


def test_without_a_frame_a_look_has_no_place() -> None:
    look = SOFT.look("x", Act(weights=torch.full((1, 2, 2), 0.25))).validate()
    assert look.frame is None
    with pytest.raises(DataError, match=r"'x' has no frame.*pass frame=frame_of\(network, input_size\)"):
        AttentionTrace((look,)).image_map(size=(8, 8))


def test_gradients_reach_the_weights() -> None:
    attention = SoftAttention(4, 3)
    context, look = attention(torch.randn(2, 4, 5, 6), torch.randn(2, 3))
    assert look.weights is not None
    look.weights.retain_grad()
    context.square().sum().backward()
    assert look.weights.grad is not None
    assert look.weights.grad.abs().sum() > 0
