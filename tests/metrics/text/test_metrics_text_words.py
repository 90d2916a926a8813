from saccade.metrics.text.ngrams import judged_captions, ngrams


def test_ngrams_by_hand():
    assert ngrams(["a", "b", "a", "b"], 2) == {("a", "b"): 2, ("b", "a"): 1}
    assert ngrams(["a"], 1) == {("a",): 1}
    assert ngrams(["a"], 2) == {}


def test_any_white_space_parts_words_and_wordless_references_are_left_out():
    (picture,) = judged_captions(["a\tdog \n runs\u2028fast"], [("", "a  dog", " \n")])
    assert picture.said == ["a", "dog", "runs", "fast"]
    assert picture.references == [["a", "dog"]]
