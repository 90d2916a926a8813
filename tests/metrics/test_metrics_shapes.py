"""Scores of two things of other shapes would broadcast to a plausible number: they are refused."""

from __future__ import annotations

import pytest
import torch

from saccade.errors import ShapeError
from saccade.metrics.maps.interventions import cause_pairs, cause_top, misplaced
from saccade.metrics.maps.localisation import total_variation
from saccade.metrics.sets import exact_match, macro_f1

MASKS = torch.zeros(3, 2, 4, 4, dtype=torch.bool)


@pytest.mark.parametrize(
    "score",
    [
        lambda: total_variation(torch.rand(3, 4, 4), torch.rand(1, 4, 4)),
        lambda: exact_match(torch.zeros(3, 5, dtype=torch.long), torch.zeros(1, 5, dtype=torch.long)),
        lambda: macro_f1(torch.zeros(3, 5, dtype=torch.long), torch.zeros(3, 1, dtype=torch.long)),
        lambda: cause_top(torch.rand(1, 2), torch.rand(3, 2)),
        lambda: cause_pairs(torch.rand(3, 1), torch.rand(3, 2)),
        lambda: misplaced(torch.rand(3, 4, 4), MASKS, torch.rand(1, 2)),
    ],
)
def test_other_shapes_do_not_broadcast(score) -> None:
    with pytest.raises(ShapeError):
        score()
