"""Maps compared with clicks, fixations and glimpses."""

import math

import pytest
import torch

from saccade import geometry
from saccade.metrics.maps.points import (
    Clicks,
    at_glimpses,
    at_points,
    at_random,
    disc,
    exactly_at,
    most_salient,
)

SIZE = (6, 8)
NOWHERE = [math.nan, math.nan]


def point(*xy):
    return torch.tensor([xy], dtype=torch.float32)


def one_pixel(row, column, size=SIZE):
    maps = torch.zeros(1, *size)
    maps[0, row, column] = 2.0
    return maps


def radius(value, pictures=1):
    return torch.full((pictures,), float(value))


def near(maps, points, radius):
    """Scores where near is within ``radius``: of an object ten times as wide."""
    boxes = torch.tensor([[0.0, 0.0, 10 * radius, 0.0]]).expand(len(maps), 4)
    return Clicks.at(points, boxes, tuple(maps.shape[1:])).scores(maps)


def test_a_disc_by_hand():
    """Within 1.0 of the centre of pixel (row 2, column 3): it and its four neighbours, not the diagonal ones."""
    found = disc(point(3.5, 2.5), radius(1.0), SIZE)[0].nonzero().tolist()
    assert found == [[1, 3], [2, 2], [2, 3], [2, 4], [3, 3]]
    assert disc(point(3.5, 2.5), radius(math.sqrt(2) + 1e-4), SIZE).sum() == 9


def test_scores_by_hand():
    """Three quarters of the weight two pixels right of the click, a quarter on it; the box is 10 pixels across."""
    maps = 3 * one_pixel(2, 5) + one_pixel(2, 3)
    click = point(3.5, 2.5)
    assert near(maps, click, 1.9)["attention_near"].tolist() == [0.25]
    assert near(maps, click, 2.0)["attention_near"].tolist() == [1.0]
    assert near(maps, click, 1.9)["pointing_at"].tolist() == [0.0]
    assert near(maps, click, 2.0)["pointing_at"].tolist() == [1.0]
    assert near(maps, click, 1.0)["distance"].tolist() == pytest.approx([0.2])


def test_a_constant_map_is_a_pixel_drawn_at_random():
    """Two pixels side by side, the click in the first: near half the time, half a pixel away on the mean."""
    maps, click = torch.full((1, 1, 2), 0.3), point(0.5, 0.5)
    found = near(maps, click, 0.5)
    assert [float(values) for values in found.values()] == [0.5, 0.5, pytest.approx(0.5 / 5)]  # of 5 pixels
    silent = near(0 * maps, click, 0.5)
    assert silent["distance"].item() == pytest.approx(0.5 / 5)
    assert silent["pointing_at"].item() == 0


def test_without_a_click_there_is_no_score():
    maps, points = torch.ones(2, *SIZE), torch.tensor([[3.0, 3.0], NOWHERE])
    for found in near(maps, points, 1.0).values():
        assert found.isnan().tolist() == [False, True]


def test_exactly_at_is_the_pixel_and_the_nearest_one_for_points_outside():
    maps = exactly_at(torch.tensor([[3.9, 2.0], [-5.0, 99.0], NOWHERE]), SIZE)
    assert maps.nonzero().tolist() == [[0, 2, 3], [1, 5, 0]]
    assert maps.sum((1, 2)).tolist() == [1, 1, 0]


def test_at_points_is_the_nearest_cell_through_the_projection():
    """A grid of 3×4 cells of two pixels each: the click at (5, 1) lies on the border of cells 2 and 3 of the first row;
    a bit to the left it is cell 2."""
    frame, grid = geometry.scale_shift((2.0, 2.0), (0.0, 0.0)), (3, 4)
    wanted = torch.zeros(1, *grid)
    wanted[0, 0, 2] = 1
    found = at_points(torch.tensor([[4.8, 1.2], NOWHERE, [99.0, -3.0]]), frame, grid, SIZE)
    torch.testing.assert_close(found[:1], geometry.project(wanted, frame, SIZE))
    assert not found[1].any()
    assert found[2, 0, -1] == found[2].max()
    batched = at_points(torch.tensor([[4.8, 1.2]]), frame[None], grid, SIZE)
    torch.testing.assert_close(batched, found[:1])


MAPS = torch.arange(12.0).reshape(1, 2, 2, 3)  # two steps on a grid of 2 × 3
CHOICE = torch.tensor([[[0, 5], [1, 1]]])


def test_the_mean_over_glimpses_of_each_steps_own_map() -> None:
    assert at_glimpses(MAPS, CHOICE).tolist() == [[2.5, 7.0]]  # (0 + 5)/2; cell 1 twice
    assert at_glimpses(MAPS[:, 0], CHOICE).tolist() == [[2.5, 1.0]]  # one map for all steps


def test_nobody_finds_more_saliency_than_who_follows_it() -> None:
    saliency = torch.rand(3, 4, 5, 5, generator=torch.Generator().manual_seed(0))
    best = at_glimpses(saliency, most_salient(saliency))
    assert torch.equal(best, saliency.flatten(2).amax(-1).double())
    assert bool((best >= at_random(saliency, torch.ones(3, 4))).all())
