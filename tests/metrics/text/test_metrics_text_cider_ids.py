"""CIDEr-D of numbers of words: the same as of strings, by hand, and what an end, a padding and a rare word do to it."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from saccade.metrics import NGramRarity, cider_each, cider_of_words
from saccade.metrics.text.ngrams import MAX_WORDS, ngram_keys

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

    expected = cider_each([text(row) for row in said], [tuple(map(text, rows)) for rows in references])
    torch.testing.assert_close(10 * judged(said, references).double(), expected, atol=1e-4, rtol=1e-5)


def test_by_hand() -> None:
    """Two pictures. Said "2 3" of "2 3" and "2 4": unigrams 2 and 3 are rare (log 2 each), and bigram 2-3 is.

    By the first reference: unigrams and bigram are equal, 1 each, and no longer run: (1 + 1) / 4. By the second: of
    (log 2, log 2) and (log 2, log 2) one of two is shared, 1/2 of a unigram's 1, no bigram: (1/2) / 4.
    """
    found = judged([[2, 3], [5]], [[[2, 3], [2, 4]], [[5]]])
    assert found.tolist() == pytest.approx([(2 / 4 + 1 / 8) / 2, 1 / 4])


def test_every_run_has_a_number_of_its_own() -> None:
    runs = [run for length in range(1, 5) for run in itertools.product(range(4), repeat=length)]
    keys = ngram_keys(padded(*map(list, runs), length=4), 4)  # (N,4,4)
    own = [int(keys[row, len(run) - 1, 0]) for row, run in enumerate(runs)]
    assert len(set(own)) == len(runs)
    assert all(int((keys[row] > 0).sum()) == sum(range(1, len(run) + 1)) for row, run in enumerate(runs))


def test_the_longest_vocabulary_still_has_them() -> None:
    last = MAX_WORDS - 1
    keys = ngram_keys(torch.tensor([[last, last, last, last]]), MAX_WORDS)
    assert int(keys[0, 3, 0]) == (MAX_WORDS + 1) ** 4 - 1 < 2**63


def test_what_is_not_there_counts_for_nothing() -> None:
    words = padded([2, 3, 4], [2, 5], [3, 3])
    rarity = NGramRarity(words, torch.tensor([0, 0, 1]), V)
    said, known = words[:2][None], words[:2][None]  # (1,2,8), (1,2,8)
    plain = cider_of_words(said, known, rarity)
    nothing = torch.full((1, 3, 8), -1)
    torch.testing.assert_close(cider_of_words(said, torch.cat([known, nothing], 1), rarity), plain)
    torch.testing.assert_close(cider_of_words(said[..., :3], known[..., :3], rarity), plain)
    assert cider_of_words(nothing, known, rarity).tolist() == [[0, 0, 0]]
    assert cider_of_words(said, nothing, rarity).tolist() == [[0, 0]]
    assert plain.shape == (1, 2)
