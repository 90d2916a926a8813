"""Finding captions, with a model whose words are known: a table of which word follows which."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from saccade.errors import ConfigError
from saccade.models.caption_decoder import LookStep, WordStep
from saccade.models.caption_decoding import END, NOTHING, UNKNOWN, Decoded, decode
from saccade.models.sat import SatModel
from tiny_models import tiny_model

GRID = (2, 3)


class Count(NamedTuple):
    """A memory: how many words were said, and the number of the picture."""

    words: Tensor
    picture: Tensor


class Table:
    """log p of the next word by picture and word before, (B,V+1,V), the last row for nothing before.

    It looks at cell (word before + words said) mod 6, and β is 1/(1 + words said).
    """

    def __init__(self, log_prob: Tensor, *, chooses: bool = False) -> None:
        self.log_prob, self.chooses = log_prob, chooses

    def init_state(self, encoding: Tensor) -> tuple[Tensor, Count]:
        rows = encoding[:, :1].long()  # each picture carries its number: (B,1)
        return rows, Count(torch.zeros_like(rows), rows)

    def next_word(self, scene: Tensor, memory: Count, before: Tensor) -> WordStep:
        logits = self.log_prob[memory.picture, before]  # -1 is the last row: (B,K,V)
        cell = (before + memory.words) % (GRID[0] * GRID[1])  # (B,K)
        weights = torch.nn.functional.one_hot(cell, GRID[0] * GRID[1]).double().unflatten(-1, GRID)  # (B,K,h,w)
        gain = 1 / (1.0 + memory.words)
        looked = LookStep(weights.flatten(2), weights, weights, gain, cell if self.chooses else None)
        return WordStep(logits, looked, Count(memory.words + 1, memory.picture))


def random_table(pictures: int, vocabulary: int, seed: int) -> Table:
    generator = torch.Generator().manual_seed(seed)
    return Table(torch.randn(pictures, vocabulary + 1, vocabulary, generator=generator).mul(2).log_softmax(-1))


def pictures(count: int) -> Tensor:
    return torch.arange(count, dtype=torch.float32).unsqueeze(1)


def said(decoded: Decoded, picture: int, which: int = 0) -> list[int]:
    return decoded.words[picture, which].tolist()


def log_prob_of(table: Table, picture: int, words: list[int]) -> float:
    total, before = 0.0, NOTHING
    for word in (word for word in words if word != NOTHING):
        total += float(table.log_prob[picture, before, word])
        before = word
    return total


def every_caption(vocabulary: int, longest: int) -> list[list[int]]:
    """All that may be said: words, and the end if there is room for it."""
    found = []
    for length in range(1, longest + 1):
        for words in itertools.product(range(2, vocabulary), repeat=length):
            found.append([*words] if length == longest else [*words, END])
    return found


def padded(words: list[int], longest: int) -> list[int]:
    return words + [NOTHING] * (longest - len(words))


def test_greedy_takes_the_likeliest_word_each_time() -> None:
    table = torch.full((1, 5, 4), -9.0)
    table[0, NOTHING, 3] = table[0, 3, 2] = table[0, 2, END] = 0.0
    found = decode(Table(table), pictures(1), longest=6)
    assert said(found, 0) == [3, 2, END, -1, -1, -1]
    assert found.lengths.tolist() == [[2]]


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_as_wide_as_there_are_captions_finds_the_best_of_all(seed: int, length_penalty: float) -> None:
    vocabulary, longest = 4, 3
    table, captions = random_table(2, vocabulary, seed), every_caption(vocabulary, longest)
    found = decode(table, pictures(2), width=40, captions=3, longest=longest, length_penalty=length_penalty)
    for picture in range(2):
        ranked = sorted(captions, key=lambda w: -log_prob_of(table, picture, w) / len(w) ** length_penalty)
        for which in range(3):
            assert said(found, picture, which) == padded(ranked[which], longest)
            assert found.log_prob[picture, which].item() == pytest.approx(
                log_prob_of(table, picture, ranked[which]), abs=1e-5
            )


@settings(max_examples=25)
@given(
    ends=st.sampled_from(["never", "at once", "as it likes"]),
    vocabulary=st.integers(3, 6),
    longest=st.integers(1, 7),
    width=st.integers(1, 6),
    seed=st.integers(0, 999),
)
def test_there_is_always_a_caption(ends: str, vocabulary: int, longest: int, width: int, seed: int) -> None:
    table = random_table(2, vocabulary, seed)
    if ends != "as it likes":
        table.log_prob[..., END] = -torch.inf if ends == "never" else 50.0
    found = decode(table, pictures(2), width=width, longest=longest)
    assert found.words.shape == (2, 1, longest)
    assert found.log_prob.isfinite().all()
    assert (found.lengths >= 1).all()
    assert (found.words[..., 0] >= 2).all()  # a word, neither the end nor the unknown
    assert not (found.words == UNKNOWN).any()
    if ends == "never":
        assert (found.lengths == longest).all()
    if ends == "at once":
        assert (found.lengths == 1).all()
    for words in found.words.flatten(0, 1).tolist():
        length = sum(word >= 2 for word in words)
        rest = words[length:]
        assert rest == (padded([END], longest - length) if rest and END in rest else [])


def test_fewer_captions_than_asked_for_are_said_to_be_none() -> None:
    found = decode(random_table(1, 4, 0), pictures(1), width=5, captions=5, longest=1)
    assert found.log_prob[0, :2].isfinite().all()  # there are two words
    assert (found.log_prob[0, 2:] == -torch.inf).all()
    assert (found.words[0, 2:] == NOTHING).all()
    assert (found.lengths[0] == torch.tensor([1, 1, 0, 0, 0])).all()


@pytest.mark.parametrize(("width", "captions"), [(1, 1), (4, 3)])
def test_many_pictures_are_found_as_one_by_one(width: int, captions: int) -> None:
    """Though some end early and others are cut."""
    table = random_table(12, 7, 3)
    options = {"width": width, "captions": captions, "longest": 9}
    together = decode(table, pictures(12), **options)
    assert len(set(together.lengths[:, 0].tolist())) > 1
    for number in range(12):
        alone = decode(table, pictures(12)[number : number + 1], **options)
        for one, whole in zip(alone, together):
            assert one is whole is None or torch.equal(one, whole[number : number + 1])


def test_no_pictures_have_no_captions() -> None:
    model = tiny_model(SatModel).eval()
    found = model.caption(model.encode(torch.rand(0, 3, 31, 34)), width=5, captions=2)
    assert found.words.shape == (0, 2, 4)
    assert found.weights.shape == (0, 2, 4, *model.grid)


@pytest.mark.parametrize("captions", [1, 4])
def test_attention_belongs_to_the_words_it_was_paid_for(captions: int) -> None:
    """Each look of this model tells the word before it and its place."""
    table = Table(random_table(3, 6, 1).log_prob, chooses=True)
    found = decode(table, pictures(3), width=captions, captions=captions, longest=8)
    assert found.choices is not None
    for picture, which in itertools.product(range(3), range(captions)):
        before = NOTHING
        for place, word in enumerate(said(found, picture, which)):
            weights, gain = found.weights[picture, which, place], found.gains[picture, which, place]
            if word == NOTHING:
                assert weights.sum() == gain == 0
                continue
            cell = (before + place) % 6
            assert weights.flatten().argmax() == cell == found.choices[picture, which, place]
            assert gain == pytest.approx(1 / (1 + place))
            before = word


def test_a_word_probability_that_does_not_add_up_to_one_is_normalised() -> None:
    table = random_table(1, 5, 0)
    shifted = Table(table.log_prob + 3.0)
    one, other = (decode(each, pictures(1), width=3) for each in (table, shifted))
    torch.testing.assert_close(one.log_prob, other.log_prob, rtol=1e-5, atol=1e-5)


def test_a_length_penalty_that_is_no_number_is_said() -> None:
    with pytest.raises(ConfigError, match="length_penalty"):
        decode(random_table(1, 4, 0), pictures(1), length_penalty=float("nan"))
