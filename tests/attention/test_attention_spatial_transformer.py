"""The spatial transformer: where known windows land, what bounded windows cannot do, gradients, and what it learns."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from saccade import geometry
from saccade.attention import PointingTransformer, SpatialTransformer
from saccade.attention.spatial_transformer import START, expected_point, square_window, window

Near = Callable[..., None]


def test_it_starts_with_the_same_window_whatever_it_sees(assert_near: Near) -> None:
    plain = SpatialTransformer(4, 3, crop=(5, 7), bounded=False)
    bounded = SpatialTransformer(4, 3, crop=(5, 7))
    seen, asked = torch.randn(6, 4) * 9, torch.randn(6, 3) * 9
    assert_near(plain.locate(seen, asked), torch.eye(2, 3).expand(6, 2, 3))
    theta = bounded.locate(seen, asked)
    assert_near(theta, START * torch.eye(2, 3).expand(6, 2, 3), atol=2e-3)
    picture = torch.rand(6, 2, 5, 7)
    assert_near(plain.attend(picture, seen, asked).crop, picture, atol=2e-5)


NUMBERS = st.lists(st.floats(-60, 60), min_size=6, max_size=6)


@given(NUMBERS, st.sampled_from([0.05, 0.1, 0.5]))
def test_a_bounded_window_stays_inside_and_upright(numbers: list[float], smallest: float) -> None:
    """All four corners lie inside the picture; the determinant is well above 0: no mirror, no point, no line."""
    theta = window(torch.tensor([numbers], dtype=torch.float64), smallest)[0]
    corners = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=2)), dtype=torch.float64)
    assert geometry.apply(theta, corners).abs().max() <= 1 + 1e-12
    extents = theta[:, :2].abs().sum(1)
    assert bool((extents > 0.99 * smallest).all())
    assert torch.linalg.det(theta[:, :2]) > extents.prod() / 3 - 1e-12


def test_bounded_windows_by_hand(assert_near: Near) -> None:
    """Extent numbers 0 with smallest 0.2: 0.2 + 0.8/2 = 0.6. Odds 3 of tanh, at ln 2: 3/5, of the 0.4 that are left."""
    numbers = torch.tensor([[0.0, 0.0, 0.0, 0.0, 0.0, math.log(2)]], dtype=torch.float64)
    theta = window(numbers, 0.2)
    assert_near(theta, [[[0.6, 0, 0], [0, 0.6, 0.24]]], rtol=2e-3)
    turned = window(torch.tensor([[0.0, 0.0, math.log(3) / 2, 0.0, 0.0, 0.0]], dtype=torch.float64), 0.2)
    assert_near(turned, [[[0.48, 0.12, 0], [0, 0.6, 0]]], rtol=2e-3)  # tanh is 1/2: 0.6 shared out as 1 : 1/4


@pytest.mark.parametrize("bounded", [True, False])
def test_gradients(bounded: bool) -> None:
    """Finite differences against autograd, through the window, the reading and the picture itself."""
    torch.manual_seed(2)
    transformer = SpatialTransformer(2, 2, crop=(3, 4), hidden=5, bounded=bounded).double()
    nn.init.normal_(transformer.to_theta.weight, std=0.3)
    seen = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    asked = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    picture = torch.rand(2, 1, 6, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *given: transformer.attend(*given)[:2], (picture, seen, asked))


def test_pace_is_the_share_of_the_way_from_the_start() -> None:
    torch.manual_seed(0)
    fast = SpatialTransformer(6, 3, crop=(4, 4), bounded=False)
    slow = SpatialTransformer(6, 3, crop=(4, 4), bounded=False, pace=0.25)
    nn.init.normal_(fast.to_theta.weight)
    slow.load_state_dict(fast.state_dict())
    seen, asked = torch.rand(5, 6), torch.rand(5, 3)
    identity = torch.eye(2, 3)
    torch.testing.assert_close(slow.locate(seen, asked) - identity, 0.25 * (fast.locate(seen, asked) - identity))


def test_coordinates_stay_exact_where_the_rest_is_computed_coarsely() -> None:
    transformer = SpatialTransformer(6, 3, crop=(4, 4))
    nn.init.normal_(transformer.to_theta.weight)
    seen, asked = torch.rand(5, 6), torch.rand(5, 3)
    with torch.autocast("cpu", torch.bfloat16):
        coarse = transformer.locate(seen, asked)
    assert coarse.dtype == torch.float32
    assert torch.equal(coarse, transformer.locate(seen, asked))


def test_the_expected_point_by_hand(assert_near: Near) -> None:
    """Columns at −1, 0, 1 and rows at −1, 1: three quarters upper right, one quarter lower left."""
    weights = torch.zeros(1, 2, 3)
    weights[0, 0, 2], weights[0, 1, 0] = 0.75, 0.25
    assert_near(expected_point(weights), [[0.75 * 1 - 0.25, -0.75 + 0.25]])


def test_a_square_window_by_hand(assert_near: Near) -> None:
    """A window of 0.4 has 0.6 to go each way: half of it to the right is 0.3, all of it up is −0.6."""
    theta = square_window(torch.tensor([[0.5, -1.0]]), torch.tensor([[0.4]]))
    assert_near(theta, [[[0.4, 0, 0.3], [0, 0.4, -0.6]]])


def test_pointing_gradients() -> None:
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
