"""Edits of looks on numbers worked out by hand: cells, slots, one step of several, one cell, another box."""

from __future__ import annotations

import pytest
import torch

from saccade.errors import DataError
from saccade.looks import Look


def words() -> Look:
    """Two words over two cells."""
    weights = torch.tensor([[[[0.25, 0.75]], [[0.5, 0.5]]]])
    return Look("word", "soft", "multiplier", weights, norm="softmax")


def slots(norm: str, *weights: float) -> Look:
    return Look("hop", "slots", "multiplier", torch.tensor([weights]), norm=norm)


@pytest.mark.parametrize(
    ("edited", "weights"),
    [
        (words().edit(torch.tensor([[False, True]]), step=0), [[[[1.0, 0.0]], [[0.5, 0.5]]]]),  # what is left sums to 1
        (words().edit(torch.tensor([[False, True]]), onto=torch.tensor([[True, False]]), step=1),
         [[[[0.25, 0.75]], [[1.0, 0.0]]]]),
        (words().edit(torch.tensor([[True, False]])), [[[[0.0, 1.0]], [[0.0, 1.0]]]]),
        (slots("softmax", 0.5, 0.3, 0.2).edit(torch.tensor([True, False, False])), [[0.0, 0.6, 0.4]]),
        (slots("sigmoid", 0.5, 0.25).edit(torch.tensor([True, False])), [[0.0, 0.25]]),  # a gate is not scaled
    ],
)  # fmt: skip
def test_weights_that_are_taken_away_or_moved(edited: Look, weights: list) -> None:
    torch.testing.assert_close(edited.weights, torch.tensor(weights))
    assert edited.norm == "none"


def test_another_cell_is_glimpsed() -> None:
    """Cell 3 of 2 × 2 is the last of the second row; each example may have its own."""
    look = Look("glimpse", "hard", "policy", torch.full((2, 3, 2, 2), 0.25), choice=torch.zeros(2, 3, dtype=torch.long))
    edited = look.point(torch.tensor([3, 1]), step=1)
    assert edited.weights[:, 1].tolist() == [[[0, 0], [0, 1]], [[0, 1], [0, 0]]]
    assert bool((edited.weights[:, [0, 2]] == 0.25).all())
    assert edited.choice is None
    assert look.point(2).weights.flatten(2).argmax(-1).tolist() == [[2] * 3] * 2


def test_another_box_is_cut() -> None:
    """A grid of 4 × 2 cells (h, w) over x 10 … 20, y 0 … 8: cells of 5 × 2 pixels that begin at (10, 0)."""
    crop = Look("crop", "crop", "crop", frame=torch.eye(2, 3).expand(2, 2, 3), grid=(4, 2))
    expected = [[[5.0, 0.0, 10.0], [0.0, 2.0, 0.0]]] * 2
    assert crop.aim(torch.tensor([10.0, 0.0, 20.0, 8.0])).frame.tolist() == expected
    assert crop.aim((10, 0, 20, 8)).frame.tolist() == expected


def test_the_first_steps_alone_are_given() -> None:
    assert words().as_given(1)["word"].tolist() == [[[[0.25, 0.75]]]]
    assert words().as_given()["word"].shape == (1, 2, 1, 2)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda: words().edit(torch.tensor([[True, False]]), step=2), "no step 2"),
        (lambda: words().edit(torch.tensor([[1.0, 0.0]])), "bool"),
        (lambda: words().point(2), "cells.*0 … 1"),
        (lambda: words().point(-1), "cells.*0 … 1"),
        (lambda: words().point(0, step=7), "no step 7"),
        (lambda: words().aim(torch.tensor([0.0, 0.0, 1.0, 1.0])), "edit it with edit"),
        (lambda: words().as_given(3), "has 2 steps"),
        (lambda: words().as_given(0), "has 2 steps"),
    ],
)
def test_what_cannot_be_edited_is_said(edit, message: str) -> None:
    with pytest.raises(DataError, match=message):
        edit()


@pytest.mark.parametrize("box", [[1.0, 0.0, 1.0, 2.0], [0.0, 0.0, float("nan"), 2.0], [2.0, 0.0, 1.0, 2.0]])
def test_a_box_without_area_is_refused(box: list[float]) -> None:
    crop = Look("crop", "crop", "crop", frame=torch.eye(2, 3)[None], grid=(2, 2))
    with pytest.raises(DataError, match="x0 < x1"):
        crop.aim(torch.tensor(box))
    with pytest.raises(DataError, match="boxes"):
        crop.aim(torch.rand(3, 4))
    with pytest.raises(DataError, match="aim"):
        crop.edit(torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(DataError, match="aim"):
        crop.point(0)
