"""Soft attention, Eq. (2)-(4) of Seo et al. (2016): the context by hand, as loops, and in its limits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from saccade.attention import SoftAttention

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


def test_one_huge_score_meets_the_arg_max() -> None:
    features = torch.randn(1, 4, 3, 3)
    scores = torch.randn(1, 3, 3)
    scores[0, 1, 2] = 1e4
    attended = with_scores(SoftAttention(4, 1), scores).attend(features, torch.zeros(1, 1))
    assert torch.equal(attended.context, features[:, :, 1, 2])
