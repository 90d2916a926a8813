"""Cross-entropy: hand-worked, its corner cases, and what does not fit."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import ShapeError
from saccade.losses import cross_entropy


def test_hand_worked_mean_of_minus_log_probability(assert_near):
    """Odds 1:3 and 1:1 give p = 3/4 and 1/2; the mean of their negative logarithms is (log 4/3 + log 2) / 2."""
    logits = torch.tensor([[0.0, math.log(3)], [5.0, 5.0]])
    expected = (math.log(4 / 3) + math.log(2)) / 2
    assert_near(cross_entropy(logits, torch.tensor([1, 0])), expected)


def test_no_opinion_costs_the_logarithm_of_the_choices(assert_near):
    assert_near(cross_entropy(torch.zeros(4, 5), torch.tensor([0, 1, 3, 4])), math.log(5))


@given(st.floats(-50, 50), st.integers(0, 2))
def test_adding_a_number_to_all_logits_changes_nothing(shift, label):
    logits = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    labels = torch.tensor([label])
    torch.testing.assert_close(cross_entropy(logits + shift, labels), cross_entropy(logits, labels))


def test_the_gradient_is_probability_minus_truth(assert_near):
    """d loss / d logits = (softmax − one-hot) / B; with equal logits of two answers that is ±1/2 over B = 2."""
    logits = torch.zeros(2, 2, requires_grad=True)
    cross_entropy(logits, torch.tensor([0, 1])).backward()
    assert_near(logits.grad, [[-0.25, 0.25], [0.25, -0.25]])


def test_confident_mistakes_stay_finite():
    loss = cross_entropy(torch.tensor([[1e4, -1e4]]), torch.tensor([1]))
    assert float(loss) == pytest.approx(2e4)


def test_it_runs_under_vmap():
    """Replicas are trained as one stacked model: the loss sees one replica at a time."""
    logits, label = torch.randn(3, 4, 5), torch.tensor([0, 1, 2, 4])
    together = torch.func.vmap(cross_entropy, in_dims=(0, None))(logits, label)
    torch.testing.assert_close(together, torch.stack([cross_entropy(one, label) for one in logits]))


@pytest.mark.parametrize("shape", [(), (5,), (2, 5, 1)])
def test_wrong_logits_are_named(shape):
    with pytest.raises(ShapeError, match=r"logits: expected shape \(B,K\)"):
        cross_entropy(torch.zeros(shape), torch.zeros(2, dtype=torch.long))


@pytest.mark.parametrize("shape", [(), (3,), (2, 1)])
def test_wrong_labels_are_named(shape):
    with pytest.raises(ShapeError, match=r"label: expected shape \(2,\) for logits \(2, 5\)"):
        cross_entropy(torch.zeros(2, 5), torch.zeros(shape, dtype=torch.long))
