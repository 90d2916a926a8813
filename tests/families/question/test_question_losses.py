"""Cross-entropy of one answer and of a set of answers: hand-worked, corner cases, and what does not fit."""

import math

import torch

from saccade.families.question.losses import binary_cross_entropy, log_likelihood_of_set


def test_a_set_of_answers_by_hand(assert_near):
    """Odds 3:1 for the first, 1:1 for the second. {first}: p = 3/4 · 1/2; {second}: p = 1/4 · 1/2."""
    logits = torch.tensor([[math.log(3), 0.0]]).expand(2, 2)
    labels = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert_near(log_likelihood_of_set(logits, labels), [math.log(3 / 8), math.log(1 / 8)])
    assert_near(binary_cross_entropy(logits, labels), (math.log(8 / 3) + math.log(8)) / 2)


def test_the_gradient_of_a_set_is_probability_minus_truth(assert_near):
    logits = torch.zeros(2, 2, requires_grad=True)
    binary_cross_entropy(logits, torch.eye(2)).backward()
    assert_near(logits.grad, [[-0.25, 0.25], [0.25, -0.25]])
