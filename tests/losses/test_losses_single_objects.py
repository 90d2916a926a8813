"""What teaches single objects: one of each picture, or each from its own place; what is not known teaches nothing."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.losses.multiset import object_loss, single_object_loss

NOWHERE = [math.nan] * 4
SOMEWHERE = [0.0, 0.0, 5.0, 5.0]


def test_a_picture_without_objects_teaches_nothing() -> None:
    """Odds of 2 : 1 for the wrong class, then an empty picture that is surely wrong about everything."""
    logits = torch.tensor([[math.log(2), 0.0], [9.0, 0.0]], requires_grad=True)
    found = single_object_loss(logits, torch.tensor([[1, -1], [-1, -1]]))
    assert float(found["loss"].detach()) == pytest.approx(math.log(3))
    assert float(found["single_accuracy"]) == 0
    found["loss"].backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[2 / 3, -2 / 3], [0.0, 0.0]]))


def test_a_label_without_a_box_teaches_nothing_of_its_place() -> None:
    """Of four places one has a label without a box, one no label: two count, one of them named rightly."""
    logits = torch.zeros(2, 2, 2)
    logits[0, 0, 0] = math.log(3)
    logits.requires_grad_()
    labels = torch.tensor([[0, 1], [1, -1]])
    boxes = torch.tensor([[SOMEWHERE, SOMEWHERE], [NOWHERE, SOMEWHERE]])
    found = object_loss(logits, labels, boxes)
    assert float(found["object_loss"].detach()) == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)
    assert float(found["object_accuracy"]) == 0.5
    found["object_loss"].backward()
    taught = torch.tensor([[[-1 / 8, 1 / 8], [1 / 4, -1 / 4]], [[0.0, 0.0], [0.0, 0.0]]])
    torch.testing.assert_close(logits.grad, taught)
