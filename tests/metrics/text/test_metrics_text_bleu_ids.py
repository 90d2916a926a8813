"""BLEU of single captions as numbers: by hand, against counting with dictionaries, and where there is nothing."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics import bleu_of_words

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


def test_by_hand() -> None:
    """the cat the | the cat sat down: 3 of 3, of which "the" once; (1+1)/(2+1), (0+1)/(1+1), 1/1; a word too short."""
    found = bleu_of_words(rows([[2, 3, 2]], 4)[None], rows([[2, 3, 4, 0]], 4)[None], VOCABULARY)
    expected = (2 / 3 * 2 / 3 * 1 / 2 * 1) ** 0.25 * math.exp(1 - 4 / 3)
    assert float(found) == pytest.approx(expected)


words = st.lists(st.integers(0, VOCABULARY - 1), max_size=7)


@given(said=st.lists(words, min_size=1, max_size=3), references=st.lists(words, min_size=1, max_size=3))
def test_it_is_what_counting_finds(said: list[list[int]], references: list[list[int]]) -> None:
    found = bleu_of_words(rows(said, 7)[None], rows(references, 7)[None], VOCABULARY)[0]
    assert found.tolist() == pytest.approx([counted(caption, references) for caption in said], abs=1e-6)
