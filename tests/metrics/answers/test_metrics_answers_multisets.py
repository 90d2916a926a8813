"""Multiset scores: numbers worked out by hand, and that no order can change them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics import (
    exact_match,
    macro_f1,
    macro_f1_by_presence,
    multiset_counts,
)
from saccade.metrics.sets import before_stop, overall_precision, overall_recall

STOP = 3
SAID = torch.tensor([[0, 0, STOP, 1], [1, 2, 2, 2], [STOP, 0, 0, 0]])
TRUE = torch.tensor([[0, 0, -1, -1], [2, 1, 2, -1], [-1, -1, -1, -1]])


def test_counts_end_at_the_first_stop_and_leave_out_padding() -> None:
    assert multiset_counts(SAID, STOP).tolist() == [[2, 0, 0], [0, 1, 3], [0, 0, 0]]
    assert multiset_counts(TRUE, STOP).tolist() == [[2, 0, 0], [0, 1, 2], [0, 0, 0]]
    assert before_stop(SAID, STOP).tolist() == [[True, True, False, False], [True] * 4, [False] * 4]


def test_exact_match_is_about_every_copy() -> None:
    said, true = multiset_counts(SAID, STOP), multiset_counts(TRUE, STOP)
    assert exact_match(said, true).tolist() == [1.0, 0.0, 1.0]  # a 2 too many; and nothing is rightly nothing


def test_macro_f1_pools_counts_by_class() -> None:
    """Class 0: 2 of 2. Class 1: 1 of 1. Class 2: 2 right of 3 said and 2 true, 2·2/(3+2)."""
    said, true = multiset_counts(SAID, STOP), multiset_counts(TRUE, STOP)
    assert macro_f1(said, true) == pytest.approx((1 + 1 + 0.8) / 3)


def test_a_class_that_does_not_occur_is_left_out_and_one_said_in_vain_is_not() -> None:
    true = torch.tensor([[1, 0, 0]])
    assert macro_f1(torch.tensor([[1, 0, 0]]), true) == 1.0
    assert macro_f1(torch.tensor([[1, 1, 0]]), true) == 0.5
    assert math.isnan(macro_f1(torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.long)))


def test_by_presence_forgives_what_is_said_of_absent_classes() -> None:
    """Class 0 is there twice, found once: recall 1/2, precision 1, F1 2/3. Class 1, said in vain, does not count."""
    said, true = torch.tensor([[1, 5]]), torch.tensor([[2, 0]])
    assert macro_f1_by_presence(said, true) == pytest.approx(2 / 3)
    assert macro_f1(said, true) == pytest.approx((2 / 3 + 0) / 2)


labels = st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=5)


def padded(rows: list[list[int]]) -> torch.Tensor:
    return torch.tensor([row + [-1] * (4 - len(row)) for row in rows])


@given(labels, labels)
def test_scores_lie_between_0_and_1_and_are_1_for_the_truth_alone(one, other) -> None:
    many = min(len(one), len(other))
    said, true = multiset_counts(padded(one[:many]), STOP), multiset_counts(padded(other[:many]), STOP)
    score = macro_f1(said, true)
    assert math.isnan(score) or 0 <= score <= 1
    if score == 1:  # each class was said as often as it is true, and where
        assert torch.equal(said, true)
    if bool(true.any()):
        assert macro_f1(true, true) == 1


def test_overall_precision_and_recall_by_hand() -> None:
    """Said 3, 3, 8 of 3, 8, 8, then 1 of 1, 2: three of four said are right, three of five are found."""
    said = multiset_counts(torch.tensor([[3, 3, 8], [1, -1, -1]]), 10)
    true = multiset_counts(torch.tensor([[3, 8, 8], [1, 2, -1]]), 10)
    assert overall_precision(said, true) == pytest.approx(3 / 4)
    assert overall_recall(said, true) == pytest.approx(3 / 5)
    nothing = torch.zeros_like(said)
    assert math.isnan(overall_precision(nothing, true))
    assert overall_recall(nothing, true) == 0
    assert math.isnan(overall_recall(said, nothing))
