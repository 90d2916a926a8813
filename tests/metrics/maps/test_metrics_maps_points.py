"""Maps against clicked points: hand-worked discs and distances, baselines that know a position, missing clicks."""

import math

import pytest
import torch

from saccade import geometry
from saccade.metrics import attention_near, distance, pointing_at
from saccade.metrics.maps.points import at_points, disc, exactly_at

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


def test_a_disc_by_hand():
    """Within 1.0 of the centre of pixel (row 2, column 3): it and its four neighbours, not the diagonal ones."""
    found = disc(point(3.5, 2.5), radius(1.0), SIZE)[0].nonzero().tolist()
    assert found == [[1, 3], [2, 2], [2, 3], [2, 4], [3, 3]]
    assert disc(point(3.5, 2.5), radius(math.sqrt(2) + 1e-4), SIZE).sum() == 9


def test_no_point_or_one_far_outside_has_no_disc():
    points = torch.tensor([NOWHERE, [100.0, 2.0]])
    assert not disc(points, radius(1.0, 2), SIZE).any()


def test_scores_by_hand():
    """Three quarters of the weight two pixels right of the click, a quarter on it; the box is 10 pixels across."""
    maps = 3 * one_pixel(2, 5) + one_pixel(2, 3)
    click, unit = point(3.5, 2.5), radius(10)
    assert attention_near(maps, click, radius(1.9)).tolist() == [0.25]
    assert attention_near(maps, click, radius(2.0)).tolist() == [1.0]
    assert pointing_at(maps, click, radius(1.9)).tolist() == [0.0]
    assert pointing_at(maps, click, radius(2.0)).tolist() == [1.0]
    assert distance(maps, click, unit).tolist() == pytest.approx([0.2])


def test_a_constant_map_is_a_pixel_drawn_at_random():
    """Two pixels side by side, the click in the first: near half the time, half a pixel away on the mean."""
    maps, click = torch.full((1, 1, 2), 0.3), point(0.5, 0.5)
    assert pointing_at(maps, click, radius(0.5)).tolist() == [0.5]
    assert attention_near(maps, click, radius(0.5)).tolist() == [0.5]
    assert distance(maps, click, radius(1.0)).tolist() == [0.5]
    assert distance(0 * maps, click, radius(1.0)).tolist() == [0.5]
    assert pointing_at(0 * maps, click, radius(0.5)).tolist() == [0]


def test_without_a_click_there_is_no_score():
    maps, points = torch.ones(2, *SIZE), torch.tensor([[3.0, 3.0], NOWHERE])
    for found in (
        pointing_at(maps, points, radius(1, 2)),
        attention_near(maps, points, radius(1, 2)),
        distance(maps, points, radius(1, 2)),
    ):
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
