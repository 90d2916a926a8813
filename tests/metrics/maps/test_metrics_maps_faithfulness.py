"""Deletion and insertion, and maps made from gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade import geometry
from saccade.errors import DataError
from saccade.metrics.maps import baselines
from saccade.metrics.maps.faithfulness import (
    blurred,
    deletion_and_insertion,
    gradient_times_input,
    hirescam,
    pixel_ranks,
)


def linear(weights):
    """A "model" whose probability is a weighted sum of the pixels of the first channel; weights (B,H,W)."""

    def probability(images, pictures):
        return (images[:, 0] * weights[pictures]).sum(dim=(1, 2))

    return probability


def scene(seed=0, pictures=3, size=(8, 6)):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(pictures, *size, generator=generator)
    return torch.ones(pictures, 3, *size), weights / weights.sum(dim=(1, 2), keepdim=True)


def test_a_linear_model_by_hand():
    """Weights .4 .3 .2 .1 on a picture of ones, taken in that order with fill 0.

    Deletion: 1, .6, .3, .1, 0, area ¼·(.5 + .6 + .3 + .1 + 0) = .375; insertion mirrors it: area .625.
    """
    weights = torch.tensor([[[0.2, 0.4], [0.1, 0.3]]])
    images = torch.ones(1, 1, 2, 2)
    removed, added = deletion_and_insertion(linear(weights), images, weights, fill=0.0, steps=4)
    assert removed.share.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert removed.probability[0].tolist() == pytest.approx([1, 0.6, 0.3, 0.1, 0])
    assert removed.area.item() == pytest.approx(0.375)
    assert added.probability[0].tolist() == pytest.approx([0, 0.4, 0.7, 0.9, 1])
    assert added.area.item() == pytest.approx(0.625)


def test_several_answers_of_one_picture_have_a_curve_each():
    images, weights = scene()
    halves = torch.stack([weights, weights / 2], dim=1)  # (B,2,H,W)

    def probability(altered, pictures):
        return (altered[:, :1] * halves[pictures]).sum(dim=(2, 3))  # (N,2)

    expected, _ = deletion_and_insertion(linear(weights), images, weights, fill=0.0, steps=4)
    removed, added = deletion_and_insertion(probability, images, weights, fill=0.0, steps=4)
    assert removed.probability.shape == added.probability.shape == (3, 2, 5)
    torch.testing.assert_close(removed.area, torch.stack([expected.area, expected.area / 2], dim=1))
    too_sure = torch.tensor([[0.5, 0.5], [1.5, 1.5], [0.5, 0.5]])
    with pytest.raises(DataError, match=r"picture 1 is 1\.5"):
        deletion_and_insertion(lambda altered, pictures: too_sure[pictures], images, weights, fill=0.0)


@pytest.mark.parametrize("constant", ["zero", "minus zero", "one", "projected", "noisy"])
def test_a_constant_map_is_a_random_order_and_not_a_sweep_from_the_top(constant):
    """All weight lies on the top half. From the top, deletion would score 0.25; at random about 0.5."""
    frame = geometry.scale_shift((7.3, 7.1), (2.1, 1.7))
    maps = {
        "zero": torch.zeros(1, 32, 32),
        "minus zero": torch.zeros(1, 32, 32) * -(torch.arange(32.0) % 2),
        "noisy": 1 - 2.0**-24 * (torch.arange(1024) % 7).view(1, 32, 32),
        "one": torch.ones(1, 32, 32),
        "projected": baselines.uniform(frame, (4, 4), (32, 32)) * 0.1,
    }[constant]
    weights = torch.zeros(1, 32, 32)
    weights[:, :16] = 1 / 512
    curve, _ = deletion_and_insertion(linear(weights), torch.ones(1, 1, 32, 32), maps, fill=0.0)
    assert curve.area.item() == pytest.approx(0.5, abs=0.03)
    assert torch.equal(pixel_ranks(maps), pixel_ranks(torch.ones(1, 32, 32)))


@given(seed=st.integers(0, 500))
@settings(max_examples=30, deadline=None)
def test_ranks_are_a_permutation_in_falling_order_far_below_the_peak_too(seed):
    maps = torch.exp(30 * torch.rand(2, 9, 11, generator=torch.Generator().manual_seed(seed)))
    ranks = pixel_ranks(maps)
    for one, values in zip(ranks, maps):
        assert sorted(one.flatten().tolist()) == list(range(99))
        in_order = torch.empty(99).scatter_(0, one.flatten(), values.flatten())
        assert bool((in_order[1:] <= in_order[:-1] * (1 + 2e-5)).all())


def test_blur_keeps_constants_and_the_mass_of_a_point():
    torch.testing.assert_close(blurred(torch.full((1, 3, 9, 5), 0.3), 2.0), torch.full((1, 3, 9, 5), 0.3))
    point = torch.zeros(1, 1, 21, 21)
    point[0, 0, 10, 10] = 1
    soft = blurred(point, 1.5)
    assert soft.sum().item() == pytest.approx(1, abs=1e-5)
    assert soft[0, 0, 10, 10] == soft.max()
    ratio = (soft[0, 0, 10, 13] / soft[0, 0, 10, 10]).item()
    assert ratio == pytest.approx(0.135335, abs=1e-5)  # exp(−½·(3 / 1.5)²) = exp(−2)


VALUES = torch.tensor([[[[1.0, 2.0]], [[3.0, -1.0]]]])  # (1,2,1,2)
GRADIENT = torch.tensor([[[[2.0, -1.0]], [[-1.0, 1.0]]]])


def test_products_are_summed_over_channels() -> None:
    """1·2 + 3·(−1) = −1 and 2·(−1) + (−1)·1 = −3."""
    assert hirescam(VALUES, GRADIENT).tolist() == [[[0.0, 0.0]]]
    assert hirescam(VALUES, -GRADIENT).tolist() == [[[1.0, 3.0]]]
    assert gradient_times_input(VALUES, GRADIENT).tolist() == [[[1.0, 3.0]]]
