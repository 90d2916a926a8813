"""Blocks of the published networks on numbers that can be worked out by hand."""

from __future__ import annotations

import torch
from torch import nn

from saccade import geometry
from saccade.backbones.mobile import InvertedResidual
from saccade.backbones.plain import Normalise


def test_normalise_by_hand(assert_near) -> None:
    pixel = torch.tensor([0.485, 0.456 + 0.224, 0.0]).view(1, 3, 1, 1)
    assert_near(Normalise()(pixel).flatten(), [0.0, 1.0, -0.406 / 0.225])


def test_normalise_is_a_constant_of_the_network() -> None:
    layer = Normalise()
    assert not list(layer.parameters())
    assert not layer.state_dict()
    assert layer.to(torch.float64)(torch.zeros(1, 3, 1, 1, dtype=torch.float64)).dtype == torch.float64
    assert torch.equal(geometry.frame_through(layer), geometry.identity())


def test_an_inverted_residual_adds_only_where_it_can() -> None:
    features = torch.randn(1, 8, 6, 6)
    same = InvertedResidual(8, 8, 1, 6).eval()
    nn.init.zeros_(same.conv[-1].weight)
    assert torch.equal(same(features), features)
    for other in (InvertedResidual(8, 16, 1, 6), InvertedResidual(8, 8, 2, 6)):
        nn.init.zeros_(other.conv[-1].weight)
        assert other.eval()(features).abs().max() == 0
