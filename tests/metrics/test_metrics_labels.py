"""Scores of single labels: accuracy, the first few, calibration."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.metrics.labels import accuracy_by_scale, calibration_error, correct, details_of, top_k_correct


def ids(*values):
    return torch.tensor(values)


def test_correct_is_per_example():
    assert correct(ids(1, 2, 3, 4), ids(1, 2, 0, 4)).tolist() == [1, 1, 0, 1]


def test_bins_are_closed_on_the_right_and_the_first_also_on_the_left():
    """Scales 0.5 and 1.0 fall into the first bin, 1.0001 into the second, 3.0 into the last."""
    scales = torch.tensor([0.5, 1.0, 1.0001, 1.5, 3.0])
    bins = accuracy_by_scale(ids(0, 1, 0, 0, 0), ids(0, 0, 0, 0, 0), scales)
    assert [(b.low, b.high) for b in bins] == [(0.5, 1), (1, 1.5), (1.5, 2), (2, 2.5), (2.5, 3)]
    assert [b.n for b in bins] == [2, 2, 0, 0, 1]
    assert [b.accuracy for b in bins[:2]] == [0.5, 1.0]
    assert math.isnan(bins[2].accuracy)
    assert bins[4].accuracy == 1.0


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
    half = torch.full((4,), 0.5)
    found = details_of(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), half, half, "abc")
    assert found.matrix.tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]
