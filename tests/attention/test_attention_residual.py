"""Residual attention: the equations by hand, the wiring of the mask branch, and what a look of it says."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.residual import (
    EPSILON,
    MASKS,
    MaskBranch,
    apply_mask,
    channel_mask,
    mixed_mask,
    spatial_mask,
    upsample_like,
)

KINDS = sorted(MASKS)


def sigmoid(number: float) -> float:
    return 1 / (1 + math.exp(-number))


def grid(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_a_residual_mask_adds_and_a_naive_one_multiplies() -> None:
    features, mask = grid((2.0, -4.0), (0.0, 1.0)), grid((0.25, 0.5), (1.0, 0.0))
    assert apply_mask(features, mask, residual=True).tolist() == [[2.5, -6.0], [0.0, 1.0]]  # (1 + M)·F
    assert apply_mask(features, mask, residual=False).tolist() == [[0.5, -2.0], [0.0, 0.0]]  # M·F


def test_a_mixed_mask_is_a_sigmoid_of_each_number() -> None:
    result = mixed_mask(grid((0.0, 1.0), (-2.0, 3.0)))
    expected = grid((0.5, sigmoid(1)), (sigmoid(-2), sigmoid(3)))
    torch.testing.assert_close(result, expected)


def test_a_channel_mask_has_length_one_at_every_cell() -> None:
    scores = torch.stack([grid((3.0, 0.0)), grid((4.0, -2.0))])[None]  # (1,2,1,2): cells (3,4) and (0,-2)
    expected = torch.stack([grid((0.6, 0.0)), grid((0.8, -1.0))])[None]
    torch.testing.assert_close(channel_mask(scores), expected)


def test_a_spatial_mask_is_normalised_over_the_cells_of_each_channel() -> None:
    scores = torch.stack([grid((1.0, 3.0)), grid((10.0, 30.0))])[None]  # (1,2,1,2): mean 2 and 20, deviation 1 and 10
    expected = grid((sigmoid(-1), sigmoid(1)))
    result = spatial_mask(scores)[0]
    torch.testing.assert_close(result[0], expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(result[1], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_where_all_is_equal_nothing_breaks(kind: str) -> None:
    scores = torch.zeros(1, 2, 3, 3, requires_grad=True)
    result = MASKS[kind](scores)
    result.sum().backward()
    assert result.isfinite().all()
    assert scores.grad.isfinite().all()
    assert EPSILON > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("residual", [True, False])
def test_gradients_are_right(kind: str, residual: bool) -> None:
    torch.manual_seed(0)
    features, scores = (torch.randn(2, 3, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda f, x: apply_mask(f, MASKS[kind](x), residual=residual), (features, scores))


@pytest.mark.parametrize("size", [(4, 6), (1, 1), (3, 5)])
def test_twice_the_size_is_what_torch_makes_of_it(size: tuple[int, int]) -> None:
    features = torch.randn(2, 3, *size, dtype=torch.float64)
    like = torch.empty(2, 3, 2 * size[0], 2 * size[1])
    expected = F.interpolate(features, scale_factor=2, mode="bilinear", align_corners=False)
    torch.testing.assert_close(upsample_like(features, like), expected, rtol=0, atol=1e-12)


def test_what_is_added_on_the_way_up_comes_from_the_way_down() -> None:
    """With units that do nothing, the map before the head is the pooled maps added up, each enlarged."""
    branch = MaskBranch(2, 3, lambda channels: nn.Identity()).eval()
    branch.head = nn.Identity()
    features = torch.randn(1, 2, 16, 16)
    one = branch.pool(features)
    two = branch.pool(one)
    three = branch.pool(two)
    expected = upsample_like(upsample_like(upsample_like(three, two) + two, one) + one, features)
    torch.testing.assert_close(branch(features), expected)
