"""Blocks of the published networks on numbers that can be worked out by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from saccade import geometry
from saccade.backbones.mobile import InvertedResidual
from saccade.backbones.plain import Normalise, start_weights
from saccade.backbones.resnet import BasicBlock, Bottleneck, ResidualBlock


def test_normalise_by_hand(assert_near) -> None:
    pixel = torch.tensor([0.485, 0.456 + 0.224, 0.0]).view(1, 3, 1, 1)
    assert_near(Normalise()(pixel).flatten(), [0.0, 1.0, -0.406 / 0.225])


def test_normalise_is_a_constant_of_the_network() -> None:
    layer = Normalise()
    assert not list(layer.parameters())
    assert not layer.state_dict()
    assert layer.to(torch.float64)(torch.zeros(1, 3, 1, 1, dtype=torch.float64)).dtype == torch.float64
    assert torch.equal(geometry.frame_through(layer), geometry.identity())


@pytest.mark.parametrize("block", [BasicBlock, Bottleneck])
def test_a_block_without_residual_rectifies_its_input(block: type[ResidualBlock]) -> None:
    """With the last norm at zero F(x) = 0, so y = ReLU(x); the input itself is left as it was."""
    layer = block(8, 8 // block.expansion, 1).eval()
    nn.init.zeros_(layer.branch()[-1].weight)
    features = torch.randn(2, 8, 5, 5)
    kept = features.clone()
    assert torch.equal(layer(features), features.clamp(min=0))
    assert torch.equal(features, kept)


def test_an_inverted_residual_adds_only_where_it_can() -> None:
    features = torch.randn(1, 8, 6, 6)
    same = InvertedResidual(8, 8, 1, 6).eval()
    nn.init.zeros_(same.conv[-1].weight)
    assert torch.equal(same(features), features)
    for other in (InvertedResidual(8, 16, 1, 6), InvertedResidual(8, 8, 2, 6)):
        nn.init.zeros_(other.conv[-1].weight)
        assert other.eval()(features).abs().max() == 0


def test_start_weights_by_fan_out() -> None:
    """Standard deviation √(2 / (out · k²)) = √(2 / (64 · 9)), biases zero."""
    layer = nn.Conv2d(64, 64, 3)
    start_weights(layer)
    assert layer.weight.std().item() == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.02)
    assert layer.bias.abs().max() == 0
