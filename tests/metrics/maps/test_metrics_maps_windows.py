"""Other places for crops, on boxes that can be worked out by hand."""

from __future__ import annotations

import pytest
import torch

from saccade.metrics.maps.edits import beside, grown, over, places_of, round_about

CROP = torch.tensor([[10.0, 10.0, 40.0, 30.0]])  # 30 × 20
SIZE = (100, 100)


def test_places_fill_the_picture_and_keep_the_sides():
    places = places_of(torch.tensor([[30.0, 20.0]]), SIZE)[0]
    assert places[:, :2].min(0).values.tolist() == [0, 0]
    assert places[:, 2:].max(0).values.tolist() == [100, 100]
    assert ((places[:, 2:] - places[:, :2]) - torch.tensor([30.0, 20.0])).abs().max() < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_a_window_beside_holds_nothing_of_the_target_and_one_over_holds_it_all(seed: int):
    target = torch.tensor([[15.0, 12.0, 25.0, 22.0]])
    box, found = beside(CROP, target, SIZE, seed=seed)
    x0, y0, x1, y1 = box[0].tolist()
    assert bool(found[0])
    assert x1 <= 15 or x0 >= 25 or y1 <= 12 or y0 >= 22
    box, found = over(CROP, target, SIZE, seed=seed)
    x0, y0, x1, y1 = box[0].tolist()
    assert bool(found[0])
    assert x0 <= 15 <= 25 <= x1
    assert y0 <= 12 <= 22 <= y1
    assert (x1 - x0, y1 - y0) == (pytest.approx(30), pytest.approx(20))


def test_a_window_round_the_target_is_moved_inside_the_picture():
    target = torch.tensor([[0.0, 40.0, 10.0, 60.0]])
    assert grown(target, 1.5, 20.0).tolist() == [[20, 30]]
    assert round_about(target, torch.tensor([[20.0, 30.0]]), SIZE).tolist() == [[0, 35, 20, 65]]
