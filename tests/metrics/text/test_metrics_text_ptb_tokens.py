"""Words of captions as the COCO evaluation cuts them: its own tokeniser's words, rules one by one, the oracle."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics.text.meteor import meteor_jar, meteor_lite, meteor_missing
from saccade.metrics.text.ngrams import bleu, cider_each, rouge_l_each
from saccade.metrics.text.tokens import ptb_tokens

FIXTURE = json.loads(Path(__file__).with_name("caption_hard_fixture.json").read_text())
CAPTIONS, EXPECTED = FIXTURE["captions"], FIXTURE["scores"]
SAID, KNOWN = [said for said, *_ in CAPTIONS], [known for _, *known in CAPTIONS]


@pytest.mark.reference
def test_words_are_those_of_the_evaluation():
    found = [[" ".join(ptb_tokens(caption)) for caption in captions] for captions in CAPTIONS]
    assert sum(map(len, found)) == 80
    assert found == FIXTURE["words"]


@pytest.mark.reference
def test_scores_are_those_of_the_evaluation():
    found = bleu(SAID, KNOWN)
    assert [found[f"bleu_{order}"] for order in (1, 2, 3, 4)] == pytest.approx(EXPECTED["bleu"], abs=1e-8)
    assert rouge_l_each(SAID, KNOWN).tolist() == pytest.approx(EXPECTED["rouge_l_each"], abs=1e-12)
    assert cider_each(SAID, KNOWN).tolist() == pytest.approx(EXPECTED["cider_each"], abs=1e-11)
    assert meteor_lite(SAID, KNOWN) == pytest.approx(EXPECTED["meteor_exact_stem"], abs=1e-12)
    assert found["bleu_4"] > 0.1  # so that every order counts


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.skipif(meteor_missing() is not None, reason=str(meteor_missing()))
def test_meteor_of_the_jar():
    assert meteor_jar(SAID, KNOWN) == pytest.approx(EXPECTED["meteor"], abs=1e-9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A black dog is running .", "a black dog is running"),
        ("the ocean 's edge", "the ocean 's edge"),  # as Flickr8k writes it
        ("it's I'm he'd they're we've she'll shouldn't've", "it 's i 'm he 'd they 're we 've she 'll should n't 've"),
        ("dogs' jumpin' 'til 'em ma'am d'oh they'dog", "dogs jumpin 'til 'em ma'am d'oh they dog"),
        ("Cannot GONNA 'tis gonna's", "can not gon na 't is gonna 's"),
        ("'90s 90's '99 '501", "'90s 90 's '99 501"),
        ("No. 5 no.5 no. St. etc. lb.", "no. 5 no. 5 no st. etc. lb"),
        ("in La. in la. U.S. u.s. vitamin b.", "in la. in la u.s. u.s. vitamin b."),
        ("plan b. The dog", "plan b the dog"),
        ("2.5 .5 10,000 12:30 5:30pm 1/2 50% $5 US$5 £5 -5", "2.5 .5 10,000 12:30 5:30 pm 1/2 50 % $ 5 us$ 5 # 5 -5"),
        ("(a) [b] {c} <d> :) -LRB-", "-lrb- a -rrb- -lsb- b -rsb- -lcb- c -rcb- <d> :-rrb- -lrb-"),
        ("! !! ?! ... .... -- --- ----- a--b a… –", "!! ?! ----- a b a"),
        ("AT&T at&t a&amp;b C++ a/b w/ a_b #tag # @home", "at&t at & t a & b c++ a/b w / a_b #tag # @home"),
        ("“a” ‘b’ ``c'' \"d\" 'e' «f»", "a b c d e f"),
        ("don’t o’clock co‑op", "do n't o'clock co-op"),
        ("café 日本語 犬🐦 काला कुत्ता ×", "café 日本語 犬 काला कुत्ता ×"),
        ("", ""),
        (" . , ! \n\t", ""),
    ],
)
def test_words(text, words):
    assert ptb_tokens(text) == words.split()


@given(st.text())
def test_any_text_becomes_words_without_white_space_or_capitals(text):
    for word in ptb_tokens(text):
        assert word.split() == [word]
        assert word == word.lower()
