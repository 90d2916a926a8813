"""METEOR of single captions as numbers: by hand, beside that of strings, where captions break off or are not there."""

from __future__ import annotations

import pytest
import torch

from saccade.metrics import MeteorWords, meteor_lite, meteor_of_words

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


@pytest.mark.parametrize("loose", ["in", "with a", "is", "in the"])
def test_breaking_off_costs_though_the_reference_has_those_words(loose: str) -> None:
    reference = "a man with a hat is in the grass"
    whole = score("a man", reference)
    assert score(f"a man {loose}", reference) < whole
    assert score(f"a man {loose} <end>", reference) < whole
    assert score(f"a man {loose} grass", reference) > whole
