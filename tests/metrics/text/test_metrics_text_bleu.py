import math

import pytest

from saccade.metrics import bleu, bleu_intervals


def test_counts_are_clipped_by_the_reference_that_has_most():
    """The example of Papineni et al.: "the" seven times; one reference has it twice, so 2 of 7."""
    found = bleu(["the the the the the the the"], [("the cat is on the mat", "there is a cat on the mat")])
    assert found["bleu_1"] == pytest.approx(2 / 7)
    assert found["bleu_2"] == 0


def test_a_caption_worked_by_hand():
    """Said: 5 words. 1-grams: a, red, dog, runs match, "fast" does not; 2-grams: "a red", "dog runs" of four.

    Nearest in length to 5 is the reference of 6 words: BP = exp(1 − 6/5).
    """
    found = bleu(["a red dog runs fast"], [("a red", "the big brown dog runs there")])
    assert found["length_ratio"] == pytest.approx(5 / 6)
    assert found["bleu_1_nobp"] == pytest.approx(4 / 5)
    assert found["bleu_2_nobp"] == pytest.approx(math.sqrt(4 / 5 * 2 / 4))
    assert found["bleu_2"] == pytest.approx(math.sqrt(4 / 5 * 2 / 4) * math.exp(-1 / 5))
    assert found["bleu_3"] == 0


def test_of_two_references_that_are_equally_near_in_length_the_shorter_counts():
    known = ("a red cat sits", "the big brown dog runs there")
    assert bleu(["a red dog runs fast"], [known])["length_ratio"] == pytest.approx(5 / 4)


def test_pictures_are_pooled_before_dividing():
    """2 of 2 words and 1 of 6 are 3 of 8, not the mean of the two."""
    found = bleu(["red dog", "a b c d e f"], [("red dog",), ("a x y z u v",)])
    assert found["bleu_1"] == pytest.approx(3 / 8)


def test_what_was_too_short_to_have_an_ngram_scores_nothing_there():
    found = bleu(["seven"], [("seven",)])
    assert (found["bleu_1"], found["bleu_2"], found["bleu_4_nobp"]) == (1, 0, 0)
    long = bleu(["a small red seven"], [("a small red seven",)])
    assert long["bleu_4"] == long["bleu_4_nobp"] == long["length_ratio"] == 1


def test_intervals_hold_the_score_and_shrink_with_pictures():
    said, known = ["a red dog runs", "two cats", "a bird flies"], [("a red dog runs",), ("two birds",), ("the bird",)]
    found = bleu(said * 4, known * 4)
    few, many = (bleu_intervals(said * times, known * times)["bleu_1"] for times in (4, 40))
    assert few.mean == many.mean == pytest.approx(found["bleu_1"])
    assert 0 < few.low < few.mean < few.high < 1
    assert many.high - many.low < few.high - few.low
    assert (few.n, few.images) == (12, 12)
