"""The losses of captions by hand, and that of hard attention against its bound: all draws of two among four cells."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from saccade.losses.captions import (
    caption_cross_entropy,
    doubly_stochastic,
    hard_attention_loss,
    word_log_likelihood,
)
from saccade.trace import Act, CaptionOutput

CELLS, WORDS, VOCABULARY = 4, 2, 3


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


class Example:
    """A caption of two words about a picture of four cells; where the second look goes depends on the first draw."""

    def __init__(self, seed: int, words: tuple[int, ...] = (1, 0)) -> None:
        generator = torch.Generator().manual_seed(seed)

        def numbers(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64).mul(1.5).requires_grad_()

        self.first, self.second = numbers(CELLS), numbers(CELLS, CELLS)
        self.said_first, self.said_second = numbers(CELLS, VOCABULARY), numbers(CELLS, CELLS, VOCABULARY)
        self.parameters = (self.first, self.second, self.said_first, self.said_second)
        self.words = torch.tensor([words])

    def raw(self, cells: tuple[int, int], *, expected: bool = False) -> CaptionOutput:
        """What a model would give that drew these cells."""
        one, two = cells
        log_alpha = torch.stack([self.first.log_softmax(0), self.second[one].log_softmax(0)])  # (T,L)
        return CaptionOutput(
            torch.stack([self.said_first[one], self.said_second[one, two]]).unsqueeze(0),
            {"word": Act(log_prob=torch.stack([log_alpha[0, one], log_alpha[1, two]]).unsqueeze(0))},
            entropy=-(log_alpha.exp() * log_alpha).sum(1).unsqueeze(0),
            expected=torch.tensor([expected]),
        )

    def probability(self, cells: tuple[int, int]) -> Tensor:
        return self.raw(cells).acts["word"].log_prob.sum().exp()

    def log_likelihood(self, cells: tuple[int, int]) -> Tensor:
        return word_log_likelihood(self.raw(cells).logits, self.words).sum()

    def gradients(self, objective: Tensor) -> list[Tensor]:
        found = torch.autograd.grad(objective, self.parameters, allow_unused=True)
        return [torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, found)]


DRAWS = tuple(itertools.product(range(CELLS), repeat=WORDS))
BASELINES = (0.0, -1.3, 5.0)


def expected_gradients(example: Example, baseline: float, **options: bool) -> list[Tensor]:
    """Of the loss, over all draws."""
    total = [torch.zeros_like(parameter) for parameter in example.parameters]
    for cells in DRAWS:
        loss = hard_attention_loss(
            example.raw(cells), example.words, torch.tensor(baseline), entropy_weight=0.0, **options
        )["loss"]
        for sum_, gradient in zip(total, example.gradients(loss)):
            sum_ += example.probability(cells).detach() * gradient
    return total


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("to_go", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_gradient_is_unbiased_for_that_of_the_bound(seed: int, to_go: bool, baseline: float) -> None:
    """Eq. (10)-(12): whatever the baseline, and whether a draw is judged by all words or by those from it on."""
    example = Example(seed)
    bound = sum((example.probability(cells) * example.log_likelihood(cells) for cells in DRAWS), torch.zeros(()))
    for found, exact in zip(expected_gradients(example, baseline, to_go=to_go), example.gradients(-bound)):
        torch.testing.assert_close(found, exact)


def test_of_what_was_expected_no_draw_is_judged() -> None:
    example = Example(0)
    loss = hard_attention_loss(example.raw((1, 2), expected=True), example.words, torch.tensor(0.0), entropy_weight=0.0)
    assert loss["policy_loss"] == 0
    first, second, *_ = example.gradients(loss["loss"])
    assert (first == 0).all()
    assert (second == 0).all()
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
