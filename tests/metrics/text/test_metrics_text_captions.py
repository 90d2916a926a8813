"""What holds for every score of captions: the reference evaluation's numbers, and the properties they share."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics.text.meteor import meteor_jar, meteor_lite, meteor_missing
from saccade.metrics.text.ngrams import bleu, cider, cider_scores, rouge_l, rouge_l_scores
from saccade.metrics.text.tokens import ptb_tokens


def bleu_4(hypotheses, references):
    return bleu(hypotheses, references)["bleu_4"]


SCORES = [bleu_4, rouge_l, cider, meteor_lite]
TOP = {cider: 10}  # of the scale; 1 of every other score


@pytest.mark.parametrize("score", SCORES)
def test_the_ends_of_the_scale(score):
    captions = ["a small red seven runs", "two white birds fly above", "the boat left of it"]
    known = [(caption,) for caption in captions]
    assert score(captions, known) == pytest.approx(TOP.get(score, 1))
    assert score(captions[1:] + captions[:1], known) == 0
    assert score([""] * 3, known) == 0


HARD_FIXTURE = json.loads(Path(__file__).with_name("caption_hard_fixture.json").read_text())
CAPTIONS, HARD_EXPECTED = HARD_FIXTURE["captions"], HARD_FIXTURE["scores"]
HARD_SAID, HARD_KNOWN = [said for said, *_ in CAPTIONS], [known for _, *known in CAPTIONS]


@pytest.mark.reference
def test_words_are_those_of_the_evaluation():
    found = [[" ".join(ptb_tokens(caption)) for caption in captions] for captions in CAPTIONS]
    assert sum(map(len, found)) == 80
    assert found == HARD_FIXTURE["words"]


@pytest.mark.reference
def test_scores_are_those_of_the_evaluation():
    found = bleu(HARD_SAID, HARD_KNOWN)
    assert [found[f"bleu_{order}"] for order in (1, 2, 3, 4)] == pytest.approx(HARD_EXPECTED["bleu"], abs=1e-8)
    assert rouge_l_scores(HARD_SAID, HARD_KNOWN).tolist() == pytest.approx(HARD_EXPECTED["rouge_l_each"], abs=1e-12)
    assert cider_scores(HARD_SAID, HARD_KNOWN).tolist() == pytest.approx(HARD_EXPECTED["cider_each"], abs=1e-11)
    assert meteor_lite(HARD_SAID, HARD_KNOWN) == pytest.approx(HARD_EXPECTED["meteor_exact_stem"], abs=1e-12)
    assert found["bleu_4"] > 0.1  # so that every order counts


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.skipif(meteor_missing() is not None, reason=str(meteor_missing()))
def test_meteor_of_the_jar_on_hard_captions():
    assert meteor_jar(HARD_SAID, HARD_KNOWN) == pytest.approx(HARD_EXPECTED["meteor"], abs=1e-9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("'90s 90's '99 '501", "'90s 90 's '99 501"),
        ("(a) [b] {c} <d> :) -LRB-", "-lrb- a -rrb- -lsb- b -rsb- -lcb- c -rcb- <d> :-rrb- -lrb-"),
        ("AT&T at&t a&amp;b C++ a/b w/ a_b #tag # @home", "at&t at & t a & b c++ a/b w / a_b #tag # @home"),
        ("“a” ‘b’ ``c'' \"d\" 'e' «f»", "a b c d e f"),
        ("café 日本語 犬🐦 काला कुत्ता ×", "café 日本語 犬 काला कुत्ता ×"),
        (" . , ! \n\t", ""),
    ],
)
def test_words_that_the_captions_of_the_evaluation_do_not_have(text, words):
    assert ptb_tokens(text) == words.split()


@given(st.text())
def test_any_text_becomes_words_without_white_space_or_capitals(text):
    for word in ptb_tokens(text):
        assert word.split() == [word]
        assert word == word.lower()
