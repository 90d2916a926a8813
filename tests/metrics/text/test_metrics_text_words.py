import pytest

from saccade.errors import DataError
from saccade.metrics import bleu, cider, meteor_lite, rouge_l
from saccade.metrics.text.ngrams import judged_captions, ngrams

SCORES = [bleu, rouge_l, cider, meteor_lite]


def test_ngrams_by_hand():
    assert ngrams(["a", "b", "a", "b"], 2) == {("a", "b"): 2, ("b", "a"): 1}
    assert ngrams(["a"], 1) == {("a",): 1}
    assert ngrams(["a"], 2) == {}


def test_any_white_space_parts_words_and_wordless_references_are_left_out():
    (picture,) = judged_captions(["a\tdog \n runs\u2028fast"], [("", "a  dog", " \n")])
    assert picture.said == ["a", "dog", "runs", "fast"]
    assert picture.references == [["a", "dog"]]


@pytest.mark.parametrize("score", SCORES)
def test_what_is_not_captions_is_an_error_that_says_so(score):
    with pytest.raises(DataError, match="2 hypotheses and references of 1"):
        score(["a", "b"], [("a",)])
    with pytest.raises(DataError, match="references of picture 1: found one string"):
        score(["a", "b"], [("a",), "a dog runs"])
    with pytest.raises(DataError, match="hypotheses: found one string"):
        score("a dog", [("a",)] * 5)
    with pytest.raises(DataError, match="picture 1 has no reference with a word"):
        score(["a", "b"], [("a",), ("", " ")])
    with pytest.raises(DataError, match="picture 0 has no reference"):
        score(["a"], [()])
