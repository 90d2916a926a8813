"""Maps of attribution methods, by hand and beside captum."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from saccade.metrics.maps.faithfulness import (
    grad_cam,
    gradient_times_input,
    hirescam,
    integrated_gradients,
    occlusion,
)

VALUES = torch.tensor([[[[1.0, 2.0]], [[3.0, -1.0]]]])  # (1,2,1,2)
GRADIENT = torch.tensor([[[[2.0, -1.0]], [[-1.0, 1.0]]]])


def test_products_are_summed_over_channels() -> None:
    """1·2 + 3·(−1) = −1 and 2·(−1) + (−1)·1 = −3."""
    assert hirescam(VALUES, GRADIENT).tolist() == [[[0.0, 0.0]]]
    assert hirescam(VALUES, -GRADIENT).tolist() == [[[1.0, 3.0]]]
    assert gradient_times_input(VALUES, GRADIENT).tolist() == [[[1.0, 3.0]]]


def test_cells_add_up_to_the_logit_behind_a_mean_and_a_layer() -> None:
    torch.manual_seed(0)
    features = torch.rand(2, 4, 3, 5, requires_grad=True)
    weight = torch.rand(4)  # of one class, no bias
    logit = features.mean((2, 3)) @ weight  # (2,)
    gradient = torch.autograd.grad(logit.sum(), features)[0]
    torch.testing.assert_close(hirescam(features.detach(), gradient).sum((1, 2)), logit.detach())


def test_grad_cam_weighs_channels_not_places() -> None:
    """Mean gradients ½ and 0: ½·1 + 0·3 and ½·2 + 0·(−1); where a gradient lies says nothing."""
    assert grad_cam(VALUES, GRADIENT).tolist() == [[[0.5, 1.0]]]
    assert torch.equal(grad_cam(VALUES, GRADIENT), grad_cam(VALUES, GRADIENT.flip(-1)))


def square(images: Tensor) -> Tensor:
    """Σ x²: the integral of its gradient is x, so the map is x² of every pixel."""
    return images.square().sum((1, 2, 3))


def test_integrated_gradients_add_up_to_the_score() -> None:
    torch.manual_seed(0)
    images = torch.rand(2, 3, 4, 5)
    maps = integrated_gradients(square, images, steps=4)
    torch.testing.assert_close(maps, images.square().sum(1))
    torch.testing.assert_close(maps.sum((1, 2)), square(images))


def test_occlusion_by_hand() -> None:
    """A row of four pixels, windows of two that begin at 0, 1 and 2; the score is the value of the third pixel.

    The pixels lie in windows that lose nothing, nothing and 5, 5 and 5, and 5: means 0, 2.5, 5, 5.
    """
    images = torch.tensor([1.0, 2.0, 5.0, 3.0]).view(1, 1, 1, 4).expand(1, 3, 2, 4)
    maps = occlusion(lambda pictures: pictures[:, 0, 0, 2], images, window=2, stride=1)
    assert maps[0, 0].tolist() == [0.0, 2.5, 5.0, 5.0]


def test_they_are_those_of_captum() -> None:
    attr = pytest.importorskip("captum.attr")
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh())
    images = torch.rand(2, 3, 24, 24)

    def score(pictures: Tensor) -> Tensor:
        return layer(pictures).square().mean((1, 2, 3))

    theirs = attr.IntegratedGradients(score).attribute(images, n_steps=64, method="riemann_middle").sum(1).abs()
    torch.testing.assert_close(integrated_gradients(score, images, steps=64), theirs.float(), atol=1e-6, rtol=1e-4)
    theirs = attr.Occlusion(score).attribute(images, (3, 6, 6), strides=(3, 3, 3), baselines=0.0).mean(1).abs()
    torch.testing.assert_close(occlusion(score, images, window=6, stride=3), theirs.float(), atol=1e-6, rtol=1e-3)
    held = layer(images).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(held.square().mean((1, 2, 3)).sum(), held)
    theirs = attr.LayerGradCam(score, layer).attribute(images, relu_attributions=True)[:, 0]
    torch.testing.assert_close(grad_cam(held.detach(), gradient), theirs, atol=1e-6, rtol=1e-4)
