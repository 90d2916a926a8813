"""Scores of captions: the reference evaluation's numbers, shared properties, and BLEU, ROUGE-L and CIDEr-D by hand."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from saccade.metrics.text.meteor import meteor_jar, meteor_lite, meteor_missing
from saccade.metrics.text.ngrams import (
    MAX_WORDS,
    NGramRarity,
    _longest_common,
    bleu,
    bleu_intervals,
    bleu_of_words,
    cider,
    cider_of_words,
    cider_scores,
    ngram_keys,
    rouge_l,
    rouge_l_scores,
    split_with_stops,
)
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


def test_a_full_stop_is_a_word_where_spaces_part_words():
    """By rules 2 of 3 words match, with the full stop 3 of 4."""
    said, known = ["a red dog ."], [("A red cat .",)]
    assert bleu_intervals(said, known)["bleu_1_nobp"].mean == pytest.approx(2 / 3)
    assert bleu_intervals(said, known, cut=split_with_stops)["bleu_1_nobp"].mean == pytest.approx(3 / 4)


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


def longest_by_table(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if left == right else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=90)


@given(said=WORDS, references=st.lists(WORDS, min_size=1, max_size=3))
def test_the_bits_count_what_the_table_counts(said, references):
    """Captions of more than 64 words too: there is no machine word to overflow."""
    assert _longest_common(said, references) == [longest_by_table(said, words) for words in references]


def test_two_pictures_worked_by_hand():
    """Every word of "red dog" and "blue cat" is in one picture of two: idf log 2; "a" is in both: idf 0.

    Said "a red cat" of "a red dog": 1-grams share "red" of (red, cat) and (red, dog): (log 2)² / (√2 log 2)² = 1/2;
    2-grams share "a red" of (a red, red cat), (a red, red dog): 1/2; 3-grams share nothing; there are no 4-grams.
    """
    known = [("a red dog",), ("a blue cat",)]
    assert cider_scores(["a red cat", "a blue cat"], known).tolist() == pytest.approx(
        [10 * (0.5 + 0.5) / 4, 10 * 3 / 4]
    )


VOCABULARY = 5


def rows(captions: list[list[int]], width: int) -> torch.Tensor:
    return torch.tensor([caption + [-1] * (width - len(caption)) for caption in captions])


def counted(said: list[int], references: list[list[int]]) -> float:
    """The same with dictionaries."""
    references = [reference for reference in references if reference]
    if not said or not references:
        return 0.0

    def runs(words: list[int], order: int) -> Counter:
        return Counter(tuple(words[place : place + order]) for place in range(len(words) - order + 1))

    total = 0.0
    for order in range(1, 5):
        mine, most = runs(said, order), Counter()
        for reference in references:
            most |= runs(reference, order)
        one = int(order > 1)
        matched = (mine & most).total()
        if matched + one == 0:
            return 0.0
        total += math.log((matched + one) / max(1, mine.total() + one)) / 4
    closest = min((abs(len(reference) - len(said)), len(reference)) for reference in references)[1]
    return math.exp(total + min(0.0, 1 - closest / len(said)))


words = st.lists(st.integers(0, VOCABULARY - 1), max_size=7)


@given(said=st.lists(words, min_size=1, max_size=3), references=st.lists(words, min_size=1, max_size=3))
def test_it_is_what_counting_finds(said: list[list[int]], references: list[list[int]]) -> None:
    found = bleu_of_words(rows(said, 7)[None], rows(references, 7)[None], VOCABULARY)[0]
    assert found.tolist() == pytest.approx([counted(caption, references) for caption in said], abs=1e-6)


V = 6
captions = st.lists(st.integers(0, V - 1), min_size=1, max_size=7)
pictures = st.lists(st.tuples(captions, st.lists(captions, min_size=1, max_size=3)), min_size=1, max_size=5)


def padded(*rows: list[int], length: int = 8) -> Tensor:
    return torch.tensor([row + [-1] * (length - len(row)) for row in rows])


def judged(said: list[list[int]], references: list[list[list[int]]]) -> Tensor:
    """One caption of each picture, by the document frequencies of these references."""
    most = max(map(len, references))
    known = torch.stack([padded(*each, *[[]] * (most - len(each))) for each in references])  # (B,R,T)
    rows = [row for each in references for row in each]
    about = torch.tensor([number for number, each in enumerate(references) for _ in each])
    return cider_of_words(padded(*said)[:, None], known, NGramRarity(padded(*rows), about, V))[:, 0]


@given(pictures)
@settings(max_examples=60, deadline=None)
def test_it_is_the_score_of_the_same_words(found: list[tuple[list[int], list[list[int]]]]) -> None:
    said, references = [list(each) for each in zip(*found)]

    def text(row: list[int]) -> str:
        return " ".join(f"w{word}" for word in row)

    expected = cider_scores([text(row) for row in said], [tuple(map(text, rows)) for rows in references])
    torch.testing.assert_close(10 * judged(said, references).double(), expected, atol=1e-4, rtol=1e-5)


def test_the_longest_vocabulary_still_has_them() -> None:
    last = MAX_WORDS - 1
    keys = ngram_keys(torch.tensor([[last, last, last, last]]), MAX_WORDS)
    assert int(keys[0, 3, 0]) == (MAX_WORDS + 1) ** 4 - 1 < 2**63
