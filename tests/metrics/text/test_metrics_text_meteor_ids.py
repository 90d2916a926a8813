"""METEOR of single captions as numbers: by hand, beside that of strings, where captions break off or are not there."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics import MeteorWords, meteor_lite, meteor_of_words
from saccade.metrics.text.meteor import FUNCTION_WORDS, LEADING_WORDS
from saccade.metrics.text.tokens import stem

ENTRIES = (
    "<end>", "<unknown>", "a", "in", "the", "with", "is", "it",
    "dog", "dogs", "runs", "running", "brown", "grass", "tall", "jumps", "man", "hat",
)  # fmt: skip
END, UNKNOWN = 0, 1
WIDTH = 9


def table(delta: float = 0.75) -> MeteorWords:
    return MeteorWords(ENTRIES, end=END, unknown=UNKNOWN, delta=delta)


def rows(captions: list[str], width: int = WIDTH) -> torch.Tensor:
    """(1,N,width); a word that is no entry is unknown."""
    numbers = [[ENTRIES.index(w) if w in ENTRIES else UNKNOWN for w in caption.split()] for caption in captions]
    return torch.tensor([row + [-1] * (width - len(row)) for row in numbers])[None]


def score(said: str, *references: str, delta: float = 0.75) -> float:
    return float(meteor_of_words(rows([said]), rows(list(references)), table(delta)))


def penalty(chunks: int, pairs: int) -> float:
    return 1 - 0.6 * (chunks / pairs) ** 0.2


def test_words_stems_weights_and_chunks_by_hand() -> None:
    """a dog runs in grass | the dog is running in tall grass.

    dog, in and grass are met as words, runs as a stem; a, in | the, is, in are function words. "run in" is a run of two
    stems in both captions; dog and grass stand alone.
    """
    matched = 0.75 + 0.25 + 0.75 + 0.6 * 0.75
    there, known = 3 * 0.75 + 2 * 0.25, 4 * 0.75 + 3 * 0.25
    precision, recall = matched / there, matched / known
    expected = precision * recall / (0.85 * precision + 0.15 * recall) * penalty(3, 4)
    assert score("a dog runs in grass", "the dog is running in tall grass") == pytest.approx(expected)


def test_a_word_counts_as_often_as_the_reference_has_it() -> None:
    assert score("dog dog dog", "dog", delta=0.5) == pytest.approx(1 / (0.85 + 0.15 * 3) * penalty(1, 1))
    # dog | dog first, then one of the two that are left by its stem
    expected = 1.6 / (0.85 * 2 + 0.15 * 3) * penalty(2, 2)
    assert score("dog brown dog", "dogs dog", delta=0.5) == pytest.approx(expected)


def test_a_run_that_pairs_cannot_share_leaves_one_chunk() -> None:
    """dog man dog | man dog man: two pairs and two runs of two."""
    assert score("dog man dog", "man dog man") == pytest.approx(2 / 3 * penalty(1, 2))


@pytest.mark.parametrize(
    ("said", "references"),
    [
        ("a dog runs", ["a dog is running"]),
        ("a brown dog runs in the grass", ["the dog is running in tall grass"]),
        ("grass in dogs", ["dog in the grass"]),
        ("the man with a hat jumps", ["a dog jumps", "a man jumps with the hat", "it runs"]),
        ("tall man", ["brown dog"]),
        ("running dogs", ["dogs running in grass"]),
    ],
)
def test_without_weights_it_is_meteor_lite(said: str, references: list[str]) -> None:
    """Where each word can have one partner only, and the caption is not the reference itself."""
    expected = meteor_lite([said], [references])
    assert score(said, *references, delta=0.5) == pytest.approx(expected, abs=1e-6)


def counted(said: list[int], references: list[list[int]]) -> float:
    """The same with dictionaries."""

    def weight(number: int) -> float:
        if number == END:
            return 0.0
        return 0.25 if number != UNKNOWN and stem(ENTRIES[number]) in map(stem, FUNCTION_WORDS) else 0.75

    def stems(numbers: list[int]) -> list[str]:
        return [f"?{place}" if n == UNKNOWN else stem(ENTRIES[n]) for place, n in enumerate(numbers) if n != END]

    said = [number for number in said if number != END]
    for place in reversed(range(len(said))):
        if ENTRIES[said[place]] not in LEADING_WORDS:
            break
        said[place] = UNKNOWN
    weight_of = {stem(ENTRIES[number]): weight(number) for number in range(2, len(ENTRIES))}
    best = 0.0
    for reference in references:
        exact, mine, theirs = (
            Counter(said) & Counter(reference),
            stems(said),
            [s + " " * ("?" in s) for s in stems(reference)],
        )
        met = Counter(mine) & Counter(theirs)
        if not met:
            continue
        matched = 0.6 * sum(weight_of[each] * count for each, count in met.items())
        matched += 0.4 * sum(weight(number) * count for number, count in exact.items() if number not in (END, UNKNOWN))
        joined = (Counter(pairwise(mine)) & Counter(pairwise(theirs))).total()
        mean = matched / (0.85 * sum(map(weight, reference)) + 0.15 * sum(map(weight, said)))
        best = max(best, mean * penalty(max(1, met.total() - joined), met.total()))
    return best


numbers = st.integers(UNKNOWN, len(ENTRIES) - 1)
captions = st.lists(numbers, max_size=WIDTH - 1).flatmap(
    lambda words: st.sampled_from([words, [*words, END]])  # cut off, or ended
)
several = st.lists(captions, min_size=1, max_size=3)


def padded(captions: list[list[int]], width: int = WIDTH) -> torch.Tensor:
    return torch.tensor([caption + [-1] * (width - len(caption)) for caption in captions])[None]


@given(said=several, references=several)
def test_it_is_what_counting_finds(said: list[list[int]], references: list[list[int]]) -> None:
    found = meteor_of_words(padded(said), padded(references), table())[0]
    assert found.tolist() == pytest.approx([counted(caption, references) for caption in said], abs=1e-6)
    assert 0 <= float(found.min()) <= float(found.max()) <= 1


@pytest.mark.parametrize("loose", ["in", "with a", "is", "in the"])
def test_breaking_off_costs_though_the_reference_has_those_words(loose: str) -> None:
    reference = "a man with a hat is in the grass"
    whole = score("a man", reference)
    assert score(f"a man {loose}", reference) < whole
    assert score(f"a man {loose} <end>", reference) < whole
    assert score(f"a man {loose} grass", reference) > whole
