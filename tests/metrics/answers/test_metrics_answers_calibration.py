"""Top-k, calibration and confusion, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.metrics.labels import calibration_error, confusion_matrix, top_k_correct


def test_among_the_first_by_hand() -> None:
    logits = torch.tensor([[0.1, 0.9, 0.5], [0.9, 0.1, 0.5], [0.2, 0.3, 0.4]])
    truth = torch.tensor([1, 1, 0])
    assert top_k_correct(logits, truth, 1).tolist() == [1, 0, 0]
    assert top_k_correct(logits, truth, 2).tolist() == [1, 0, 0]
    assert top_k_correct(logits, truth, 3).tolist() == [1, 1, 1]


def test_equal_logits_are_no_gain() -> None:
    """Whoever says nothing is right as often as the first classes are true, not always."""
    assert top_k_correct(torch.zeros(4, 4), torch.arange(4), 2).tolist() == [1, 1, 0, 0]


def test_what_is_not_a_number_is_not_right() -> None:
    logits = torch.tensor([[math.nan, math.nan], [math.nan, 1.0], [2.0, math.nan], [2.0, 1.0]])
    assert top_k_correct(logits, torch.tensor([0, 1, 0, 0]), 2).tolist() == [0, 0, 0, 1]


def test_calibration_by_hand() -> None:
    """Bins (0.8, 0.867] with two answers, one right, and (0.533, 0.6] with one that is wrong."""
    confidence, right = torch.tensor([0.85, 0.83, 0.6]), torch.tensor([1.0, 0.0, 0.0])
    expected = (abs(1.68 - 1) + 0.6) / 3
    assert calibration_error(confidence, right) == pytest.approx(expected)


def test_confusion_has_a_row_for_each_true_class() -> None:
    found = confusion_matrix(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), 3)
    assert found.tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]
