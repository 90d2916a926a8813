import math

import pytest

from saccade.metrics import cider_each


def test_two_pictures_worked_by_hand():
    """Every word of "red dog" and "blue cat" is in one picture of two: idf log 2; "a" is in both: idf 0.

    Said "a red cat" of "a red dog": 1-grams share "red" of (red, cat) and (red, dog): (log 2)² / (√2 log 2)² = 1/2;
    2-grams share "a red" of (a red, red cat), (a red, red dog): 1/2; 3-grams share nothing; there are no 4-grams.
    """
    known = [("a red dog",), ("a blue cat",)]
    assert cider_each(["a red cat", "a blue cat"], known).tolist() == pytest.approx([10 * (0.5 + 0.5) / 4, 10 * 3 / 4])


def test_repetition_is_clipped_and_length_costs():
    """ "dog dog" has 2 log 2 for "dog", of which log 2 counts: 2-grams and longer share nothing; one word too long."""
    known = [("dog",), ("cat",)]
    assert cider_each(["dog dog", "cat"], known).tolist() == pytest.approx([10 * math.exp(-1 / 72) / 2 / 4, 10 / 4])


def test_references_are_averaged_not_maximised():
    known = [("a red dog runs", "x y z w"), ("two blue cats sit",)]
    assert cider_each(["a red dog runs", ""], known).tolist() == pytest.approx([5, 0])
