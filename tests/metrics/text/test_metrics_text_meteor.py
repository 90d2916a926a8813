import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics import meteor_lite
from saccade.metrics.text.meteor import EXACT, STEM, Alignment, align
from saccade.metrics.text.tokens import stem


def words(text):
    return text.split()


@pytest.mark.parametrize(
    ("stems", "text"),
    [
        ("run run run runner", "run runs running runner"),
        ("fli fli die tie cri cri by", "fly flies dies ties cry cries by"),
        ("hope hop hope hop", "hope hop hoping hopping"),  # e comes back, a double letter goes
        ("happi happi happili", "happy happiness happily"),
        ("nation nation relat condit general", "nation national relational conditional generalization"),
        ("feed agre agre", "feed agreed agree"),
        ("class class gas this bus", "classes class gas this bus"),
        ("dog dog dog", "dog dog's dogs'"),
        ("generic generat communiti communism", "generically generated community communism"),
        ("sky news inning herring succeed", "sky news inning herring succeeded"),
        ("boy enjoy say youth", "boys enjoying says youth"),  # y as a consonant
        ("sensit activ decis adjust roll", "sensitive activity decision adjustment rolling"),
        ("i a 's", "i a 's"),
    ],
)
def test_stems(stems, text):
    assert [stem(word) for word in words(text)] == words(stems)


@given(st.text(max_size=12))
def test_any_text_has_a_stem_no_longer_than_itself(text):
    assert len(stem(text)) <= len(text) + 1  # "hoping" → "hop" + "e" is the only way to grow


def test_alignments_by_hand():
    assert align(words("a dog runs"), words("a dog runs")) == Alignment(3.0, 3, 1)
    assert align(words("a dog runs"), words("a dog is running")) == Alignment(2.6, 3, 2)
    assert align(words("runs a dog"), words("a dog runs")) == Alignment(3.0, 3, 2)
    assert align(words("cat"), words("dog")) == Alignment(0.0, 0, 0)
    assert align([], words("dog")) == Alignment(0.0, 0, 0)


def every_pairing(said, reference):
    """The best of all pairings, by trying them all."""
    best = (0.0, 0, 0)
    places = [None, *range(len(reference))]
    for chosen in itertools.product(places, repeat=len(said)):
        used = [place for place in chosen if place is not None]
        if len(set(used)) < len(used):
            continue
        pairs = [(said[i], reference[place]) for i, place in enumerate(chosen) if place is not None]
        if any(stem(one) != stem(other) for one, other in pairs):
            continue
        weight = sum(EXACT if one == other else STEM for one, other in pairs)
        joins = sum(
            before is not None and after == before + 1
            for before, after in itertools.pairwise(chosen)
            if after is not None
        )
        best = max(best, (round(weight, 9), joins, len(pairs)))
    return Alignment(best[0], best[2], best[2] - best[1])


CAPTION = st.lists(st.sampled_from(["a", "run", "runs", "dog"]), max_size=5)


@given(said=CAPTION, reference=CAPTION)
def test_no_pairing_is_better(said, reference):
    assert align(said, reference) == every_pairing(said, reference)


def test_a_score_worked_by_hand():
    """ "a dog" and "runs"~"running": M = 2.6 of 3 and of 4 words, 2 chunks in 3 pairs."""
    precision, recall = 2.6 / 3, 2.6 / 4
    mean = precision * recall / (0.85 * precision + 0.15 * recall)
    expected = mean * (1 - 0.6 * (2 / 3) ** 0.2)
    assert meteor_lite(["a dog runs"], [("a dog is running",)]) == pytest.approx(expected)
    assert meteor_lite(["a dog runs"], [("two birds", "a dog is running", "a cat")]) == pytest.approx(expected)
