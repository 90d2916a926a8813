"""The classifier of single objects that readers of multisets carry: of whole pictures, and of what is in a box."""

from __future__ import annotations

import pytest
import torch

from saccade import geometry
from saccade.models.multiset_reader import MultisetCountsModel
from tiny_models import tiny_model


@pytest.fixture
def model() -> MultisetCountsModel:
    torch.manual_seed(0)
    return tiny_model(MultisetCountsModel).eval()


def test_a_box_around_one_cell_is_judged_by_that_cell(model: MultisetCountsModel) -> None:
    """Its pixels come from the frame of the look; half of a cell counts as much as all of it if nothing else is in."""
    images = torch.rand(2, 3, 31, 34)
    encoding = model.encode(images)  # (2,C,h,w)
    frame = model.backbone.frames[model.look_stage]
    for row, column, right in ((0, 0, 1.0), (1, 2, 1.0), (model.grid[0] - 1, model.grid[1] - 1, 0.5)):
        cell = torch.tensor([[column, row], [column + right, row + right]], dtype=torch.float64)
        box = geometry.apply(frame, cell).flatten().float()
        found = model.forward_raw(images, single=True, boxes=box.expand(2, 1, 4)).object_logits
        assert torch.allclose(found[:, 0], model.single(encoding[:, :, row, column]), atol=1e-5)


def test_a_box_around_everything_is_the_whole_picture(model: MultisetCountsModel) -> None:
    raw = model.forward_raw(
        torch.rand(2, 3, 31, 34), single=True, boxes=torch.tensor([-99.0, -99, 199, 199]).expand(2, 1, 4)
    )
    assert torch.allclose(raw.object_logits[:, 0], raw.single_logits, atol=1e-5)


def test_a_box_of_nothing_is_judged_without_a_nan(model: MultisetCountsModel) -> None:
    nowhere = torch.full((1, 2, 4), float("nan"))
    found = model.forward_raw(torch.rand(1, 3, 31, 34), single=True, boxes=nowhere).object_logits
    assert torch.allclose(found, model.single.bias.expand(1, 2, -1))
