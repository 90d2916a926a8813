"""What all mechanisms do: looks that show what was used, gradients, and given weights in place of their own."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from saccade import geometry
from saccade.attention import (
    CrossAttention,
    GaussianMixtureAttention,
    ProgressiveAttention,
    SoftAttention,
)
from saccade.trace import AttentionTrace

Near = Callable[..., None]

FEATURES = torch.tensor([[[[10.0, 20.0], [30.0, 40.0]], [[0.0, 0.0], [0.0, 5.0]]]], dtype=torch.float64)  # (1,2,2,2)
WEIGHTS = torch.tensor([[[0.5, 0.0], [2.0, -1.0]]], dtype=torch.float64)  # (1,2,2); they add up to 1.5
QUERY = torch.zeros(1, 3, dtype=torch.float64)
SUMS = {
    "soft": lambda: SoftAttention(2, 3, hidden=4),
    "cross": lambda: CrossAttention(2, 3, hidden=4),
    "gaussian": lambda: GaussianMixtureAttention(3, components=2),
}
"""Mechanisms whose context is Σ weights · features."""
every_sum = pytest.mark.parametrize("name", SUMS)
EVERY = {
    **SUMS,
    "soft in context": lambda: SoftAttention(2, 3, hidden=4, context=3),
    "gate": lambda: ProgressiveAttention(2, 3, hidden=4),
    "gate in context": lambda: ProgressiveAttention(2, 3, hidden=4, context=3),
}
every_mechanism = pytest.mark.parametrize("name", EVERY)


def built(name: str) -> nn.Module:
    return EVERY[name]().double()


@every_mechanism
def test_the_look_is_what_was_used(name: str, assert_near: Near) -> None:
    attention, frame = built(name), geometry.scale_shift((16, 16), (15, 15))
    features, query = torch.randn(2, 2, 5, 6).double(), torch.randn(2, 3).double()
    context, look = attention(features, query, frame=frame, name="stage1")
    AttentionTrace((look,)).validate()
    assert (look.name, look.role, look.kind) == ("stage1", "multiplier", "gate" if "gate" in name else "soft")
    assert look.frame is frame
    assert attention(features, query)[1].frame is None
    assert_near(look.rebuild(features), context)
    if name == "gaussian":
        weights = look.scores.exp()
    else:
        weights = look.scores.sigmoid() if "gate" in name else look.scores.flatten(1).softmax(1).view(2, 5, 6)
    assert_near(weights, look.weights)
    assert look.norm == ("softmax" if "soft" in name or name == "cross" else "sigmoid")


@every_mechanism
def test_gradients(name: str) -> None:
    torch.manual_seed(3)
    attention = built(name)
    features = torch.randn(2, 2, 2, 3, dtype=torch.float64, requires_grad=True)
    query = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda f, q: attention.attend(f, q).context, (features, query))


@every_sum
def test_the_context_is_the_sum_with_the_given_weights(name: str, assert_near: Near) -> None:
    """½·10 + 0·20 + 2·30 − 1·40 = 25, and −1·5 = −5: nothing is normalised, nothing is clipped."""
    attended = built(name).attend(FEATURES, QUERY, weights=WEIGHTS)
    assert_near(attended.context, [[25.0, -5.0]])
    assert torch.equal(attended.weights, WEIGHTS)


def test_a_gate_multiplies_by_the_given_weights(assert_near: Near) -> None:
    attended = built("gate").attend(FEATURES, QUERY, weights=WEIGHTS)
    assert_near(attended.context, [[[[5.0, 0.0], [60.0, -40.0]], [[0.0, 0.0], [0.0, -5.0]]]])
    assert torch.equal(attended.weights, WEIGHTS)
