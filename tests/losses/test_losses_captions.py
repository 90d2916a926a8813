"""The losses of captions by hand; test_models_sat has the gradient of hard attention's, over all draws."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.losses.captions import (
    caption_cross_entropy,
    doubly_stochastic,
    hard_attention_loss,
    word_log_likelihood,
)
from saccade.trace import Act, CaptionOutput


def test_a_caption_costs_the_sum_of_its_words_and_a_batch_the_mean() -> None:
    logits = torch.tensor([[[0.0, 0.0], [math.log(3), 0.0]], [[0.0, math.log(4)], [9.0, -9.0]]])
    words = torch.tensor([[1, 0], [0, -1]])  # p: 1/2 · 3/4, and 1/5
    expected = -(math.log(1 / 2 * 3 / 4) + math.log(1 / 5)) / 2
    assert caption_cross_entropy(logits, words).item() == pytest.approx(expected)


def test_padding_earns_nothing_and_has_no_gradient() -> None:
    logits = torch.randn(2, 3, 5, requires_grad=True)
    words = torch.tensor([[3, 0, -1], [0, -1, -1]])
    earned = word_log_likelihood(logits, words)
    assert (earned[words < 0] == 0).all()
    assert (earned[words >= 0] < 0).all()
    earned.sum().backward()
    assert (logits.grad[words < 0] == 0).all()
    assert (logits.grad[words >= 0].abs().sum(-1) > 0).all()


def test_the_penalty_by_hand() -> None:
    """Cells get 0.5 + 0.25 and 0.5 + 0.75 in two words: (1 − 0.75)² + (1 − 1.25)²; and 1, 0 in one: 0 + 1."""
    weights = torch.tensor([[[[0.5, 0.5]], [[0.25, 0.75]]], [[[1.0, 0.0]], [[0.3, 0.7]]]])  # (B,T,1,2)
    words = torch.tensor([[5, 0], [0, -1]])
    assert doubly_stochastic(weights, words).item() == pytest.approx((0.125 + 1.0) / 2)


def test_of_what_was_expected_no_draw_is_judged() -> None:
    raw = CaptionOutput(
        torch.randn(1, 2, 3),
        {"word": Act(log_prob=torch.randn(1, 2))},
        entropy=torch.zeros(1, 2),
        expected=torch.tensor([True]),
    )
    loss = hard_attention_loss(raw, torch.tensor([[1, 0]]), torch.tensor(0.0), entropy_weight=0.0)
    assert loss["policy_loss"] == 0
    assert loss["loss"] == loss["cross_entropy"]


def test_parts_by_hand() -> None:
    """p(y) = 1/2 and 1/4, p(s) = 1/2 each, b = −1, in one caption of two words and a padding."""
    raw = CaptionOutput(
        torch.tensor([[[0.0, 0.0], [0.0, math.log(3)], [5.0, 0.0]]]),
        {"word": Act(log_prob=torch.tensor([[math.log(0.5), math.log(0.5), math.log(0.1)]]))},
        entropy=torch.tensor([[0.3, 0.5, 9.0]]),
        expected=torch.tensor([False]),
    )
    words = torch.tensor([[1, 0, -1]])
    earned = math.log(1 / 2) + math.log(1 / 4)
    advantage = earned + 2
    found = hard_attention_loss(raw, words, torch.tensor(-1.0), reward_weight=0.5, entropy_weight=0.1)
    assert found["cross_entropy"].item() == pytest.approx(-earned)
    assert found["policy_loss"].item() == pytest.approx(-advantage * 2 * math.log(0.5), abs=1e-6)
    assert found["entropy"].item() == pytest.approx(0.8)
    assert found["reward"].item() == pytest.approx(earned / 2)
    expected = -earned - 0.5 * advantage * 2 * math.log(0.5) - 0.1 * 0.8
    assert found["loss"].item() == pytest.approx(expected)
    each = hard_attention_loss(raw, words, torch.tensor(-1.0), per_word=True)
    assert each["policy_loss"].item() == pytest.approx(-advantage * math.log(0.5), abs=1e-6)
