"""What lies under glimpses: gathered cells, expectations, boxes on a grid."""

from __future__ import annotations

import torch

from saccade import geometry
from saccade.metrics import at_glimpses, at_random, cells_in_boxes, most_salient

MAPS = torch.arange(12.0).reshape(1, 2, 2, 3)  # two steps on a grid of 2 × 3
CHOICE = torch.tensor([[[0, 5], [1, 1]]])


def test_the_mean_over_glimpses_of_each_steps_own_map() -> None:
    assert at_glimpses(MAPS, CHOICE).tolist() == [[2.5, 7.0]]  # (0 + 5)/2; cell 1 twice
    assert at_glimpses(MAPS[:, 0], CHOICE).tolist() == [[2.5, 1.0]]  # one map for all steps


def test_nobody_finds_more_saliency_than_who_follows_it() -> None:
    saliency = torch.rand(3, 4, 5, 5, generator=torch.Generator().manual_seed(0))
    best = at_glimpses(saliency, most_salient(saliency))
    assert torch.equal(best, saliency.flatten(2).amax(-1).double())
    assert bool((best >= at_random(saliency, 4)).all())


def test_a_cell_is_in_a_box_if_its_centre_is() -> None:
    """Cells of 10 pixels: centres at 5, 15, 25; a box from 5 to 25 holds the first two, its right edge excluded."""
    frame = geometry.scale_shift((10.0, 10.0), (0.0, 0.0))
    boxes = torch.tensor([[[5.0, 0.0, 25.0, 10.0], [16.0, 12.0, 30.0, 20.0], [float("nan")] * 4]])
    inside = cells_in_boxes(boxes, frame, (2, 3))
    assert inside.tolist() == [
        [
            [[True, True, False], [False, False, False]],
            [[False, False, False], [False, False, True]],
            [[False, False, False], [False, False, False]],
        ]
    ]
