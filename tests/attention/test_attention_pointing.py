"""Pointing: the mean place of attention, windows that stay inside, and a window that finds what was asked for."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from saccade.attention import PointingTransformer
from saccade.attention.spatial_transformer import expected_point, square_window

Near = Callable[..., None]


def test_the_expected_point_by_hand(assert_near: Near) -> None:
    """Columns at −1, 0, 1 and rows at −1, 1: three quarters upper right, one quarter lower left."""
    weights = torch.zeros(1, 2, 3)
    weights[0, 0, 2], weights[0, 1, 0] = 0.75, 0.25
    assert_near(expected_point(weights), [[0.75 * 1 - 0.25, -0.75 + 0.25]])


def test_a_square_window_by_hand(assert_near: Near) -> None:
    """A window of 0.4 has 0.6 to go each way: half of it to the right is 0.3, all of it up is −0.6."""
    theta = square_window(torch.tensor([[0.5, -1.0]]), torch.tensor([[0.4]]))
    assert_near(theta, [[[0.4, 0, 0.3], [0, 0.4, -0.6]]])


def test_the_crop_is_what_lies_under_the_attended_cell() -> None:
    """Only the lower left quarter is lit; attention goes where the feature is, so the crop is lit all over."""
    transformer = PointingTransformer(1, 1, crop=(4, 4), hidden=1, smallest=0.2, largest=0.4)
    scorer = transformer.attention.scorer
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter.zero_()
        scorer.from_features.weight.fill_(1.0)
        scorer.to_score.weight.fill_(100.0)
    picture = torch.zeros(1, 3, 20, 20)
    picture[:, :, 10:, :10] = 1
    features = torch.zeros(1, 1, 4, 4)
    features[0, 0, 3, 0] = 1
    pointed = transformer.attend(picture, features, torch.ones(1, 1))
    assert pointed.attended.weights[0, 3, 0] > 0.999
    assert pointed.crop.min() > 0.999


def test_gradients() -> None:
    """Finite differences against autograd, through attention, point, window and reading."""
    torch.manual_seed(2)
    transformer = PointingTransformer(2, 2, crop=(3, 4), hidden=5).double()
    nn.init.normal_(transformer.to_extent.weight)
    given_ = [
        torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((2, 1, 7, 6), (2, 2, 3, 2), (2, 2))
    ]
    assert torch.autograd.gradcheck(lambda *each: transformer.attend(*each)[:2], given_)


def test_what_is_not_steered_keeps_the_crop_from_teaching_the_place() -> None:
    """The same crop; its gradient reaches the number of the extent, and of the attention what that number sees."""
    torch.manual_seed(3)
    picture, features, query = torch.rand(2, 3, 9, 9), torch.rand(2, 6, 4, 4), torch.rand(2, 3)
    free = PointingTransformer(6, 3, crop=(4, 4))
    held = PointingTransformer(6, 3, crop=(4, 4), steered=False)
    held.load_state_dict(free.state_dict())
    crops = [transformer.attend(picture, features, query).crop for transformer in (free, held)]
    assert torch.equal(*crops)
    moved = []
    for transformer, crop in zip((free, held), crops):
        crop.square().sum().backward()
        moved.append(transformer.attention.scorer.to_score.weight.grad)
        assert transformer.to_extent.bias.grad.abs() > 0  # type: ignore[union-attr]
    assert moved[0].abs().max() > 0  # type: ignore[union-attr]
    assert moved[1] is None or moved[1].abs().max() == 0  # the extent's weight starts at 0, so nothing comes that way


def test_coordinates_stay_exact_where_the_rest_is_computed_coarsely() -> None:
    transformer = PointingTransformer(6, 3, crop=(4, 4))
    with torch.autocast("cpu", torch.bfloat16):
        pointed = transformer.attend(torch.rand(5, 3, 9, 9), torch.rand(5, 6, 4, 4), torch.rand(5, 3))
    assert pointed.theta.dtype == torch.float32
    assert pointed.crop.dtype == torch.float32
