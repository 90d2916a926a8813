"""Readers of multisets: how counts become a multiset, and the classifier of single objects that they carry."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from saccade import geometry
from saccade.models.multiset_reader import MultisetCountsModel
from tiny_models import tiny_model

STOP = 3


@pytest.fixture
def model() -> MultisetCountsModel:
    torch.manual_seed(0)
    return tiny_model(MultisetCountsModel).eval()


def said(model: MultisetCountsModel, shares: list[list[float]]) -> tuple[list[int], Tensor]:
    """What is said of the probabilities of 0, 1 and 2 objects of each of three classes."""
    logits, said = model._said(torch.tensor([shares]).clamp_min(1e-9).log())
    return said[0].tolist(), logits[0]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([[1, 0, 0], [1, 0, 0], [1, 0, 0]], [STOP, STOP, STOP]),
        ([[1, 0, 0], [0.1, 0.9, 0], [1, 0, 0]], [1, STOP, STOP]),
        ([[0.3, 0.7, 0], [1, 0, 0], [0.2, 0.8, 0]], [2, 0, STOP]),  # the surest first
        ([[0, 0, 1], [1, 0, 0], [1, 0, 0]], [0, 0, STOP]),
        ([[0.1, 0.2, 0.7], [1, 0, 0], [0.2, 0.8, 0]], [0, 2, 0]),  # one for sure, then the other, then one more
        ([[0, 0, 1], [0, 0, 1], [0, 0, 1]], [0, 0, 1]),  # there are no more steps
    ],
)
def test_counts_as_a_multiset(model: MultisetCountsModel, shares: list[list[float]], expected: list[int]) -> None:
    assert said(model, shares)[0] == expected


def test_logits_are_the_odds_of_one_more(model: MultisetCountsModel) -> None:
    _, logits = said(model, [[0.2, 0.5, 0.3], [1, 0, 0], [1, 0, 0]])
    torch.testing.assert_close(logits[0, 0].sigmoid(), torch.tensor(0.8))
    torch.testing.assert_close(logits[1, 0].sigmoid(), torch.tensor(0.3))
    assert torch.equal(logits[:, STOP], torch.zeros(3))
    assert logits.isfinite().all()


def test_it_counts_cell_by_cell(model: MultisetCountsModel) -> None:
    """Two pictures side by side in one volume count as their mean: no cell knows of another."""
    left, right = torch.rand(2, 1, 32, 6, 7)
    whole = model.answer(torch.cat([left, right], dim=3)).acts[model.look_stage].context
    parts = [model.answer(half).acts[model.look_stage].context for half in (left, right)]
    torch.testing.assert_close(whole, sum(parts) / 2)


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
