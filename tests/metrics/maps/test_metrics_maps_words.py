"""Whether words depend on what their maps mark, and follow what was changed."""

import math

import pytest
import torch
from torch import Tensor

from saccade.metrics.maps.words import (
    map_distances,
    marked,
    own_and_other,
    same_caption,
    word_follow,
    word_log_probabilities,
)


def test_the_top_tenth_is_a_tenth_and_holds_the_highest_pixels() -> None:
    maps = torch.arange(200.0).reshape(2, 10, 10)
    found = marked(maps)
    assert found.sum((1, 2)).tolist() == [10, 10]
    assert bool(found[0, 9].all())
    assert not bool(found[0, :9].any())


def test_log_probabilities_of_words_by_hand() -> None:
    logits = torch.tensor([[[0.0, math.log(3.0)], [0.0, 0.0], [5.0, 5.0]]])
    found = word_log_probabilities(logits, torch.tensor([[1, 0, -1]]))
    assert found[0].tolist() == pytest.approx([math.log(0.75), math.log(0.5), 0.0])


def test_own_and_other_by_hand_and_a_word_that_comes_twice() -> None:
    drops = torch.tensor([[4.0, 1.0, 1.0], [2.0, 3.0, 0.5], [6.0, 2.0, 2.5]])
    own, other = own_and_other(drops, torch.tensor([7, 8, 9]))
    assert own.tolist() == [4.0, 3.0, 2.5]
    assert other.tolist() == [4.0, 1.5, 0.75]
    _, other = own_and_other(drops, torch.tensor([7, 8, 7]))  # of words 0 and 2 the only other word is 1
    assert other.tolist() == [2.0, 1.5, 0.5]
    _, other = own_and_other(torch.tensor([[1.0]]), torch.tensor([7]))
    assert bool(other.isnan().all())


def test_distances_between_maps_by_hand() -> None:
    weights = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]])
    assert map_distances(weights, torch.tensor([1, 2, 3])).tolist() == pytest.approx([0.75, 0.75, 0.5])
    assert map_distances(weights[[0, 0]], torch.tensor([1, 2])).tolist() == [0.0, 0.0]


PLACES = 20
SIDE = 20  # a place is one of 20 columns: a tenth of the picture is two of them


def evidence(maps: Tensor, needs: Tensor) -> Tensor:
    """Eq. (2) of words that lose as many nats as the share of their columns ``needs`` (N,2) that is altered."""
    regions = marked(maps)  # (N,H,W)
    gone = regions.float().mean(1)  # (N,W): which share of each column was altered
    after = -torch.stack([gone[:, columns].mean(1) for columns in needs], 1)  # (N,N): log p of t without R_u
    own, other = own_and_other(-after, torch.arange(len(needs)))
    return own - other


@pytest.fixture
def needs() -> Tensor:
    return torch.arange(PLACES).reshape(10, 2)


def test_maps_that_mark_what_each_word_needs_have_all_of_it(needs: Tensor) -> None:
    maps = torch.zeros(len(needs), SIDE, SIDE)
    for word, columns in enumerate(needs):
        maps[word, :, columns] = 1
    assert evidence(maps, needs).tolist() == pytest.approx([1.0] * len(needs))


def test_maps_that_are_the_same_for_every_word_have_none(needs: Tensor) -> None:
    same = torch.rand(1, SIDE, SIDE, generator=torch.Generator().manual_seed(0)).expand(len(needs), -1, -1)
    for maps in (torch.ones(len(needs), SIDE, SIDE), same):
        assert evidence(maps, needs).tolist() == pytest.approx([0.0] * len(needs), abs=1e-6)


def test_maps_of_noise_have_none_on_average(needs: Tensor) -> None:
    generator = torch.Generator().manual_seed(0)
    found = torch.cat([evidence(torch.rand(10, SIDE, SIDE, generator=generator), needs) for _ in range(200)])
    error = float(found.std()) / len(found) ** 0.5
    assert abs(float(found.mean())) < 3 * error < 0.01


A, RED, BLUE, SEVEN, TWO = 2, 3, 4, 5, 6  # ids; 0 is the end, −1 is padding


def captions(*rows):
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[-1] * (width - len(row))] for row in rows])


@pytest.mark.parametrize(
    ("before", "after", "place", "followed", "held"),
    [
        ([A, RED, SEVEN, 0], [A, BLUE, SEVEN, 0], 1, 1, 1),
        ([A, RED, SEVEN, 0], [A, RED, SEVEN, 0], 1, 0, 1),  # did not notice
        ([A, RED, SEVEN, 0], [A, BLUE, TWO, 0], 1, 1, 0),  # the digit changed as well
        ([A, RED, SEVEN, 0], [A, BLUE, SEVEN, A, RED, TWO, 0], 1, 1, 0),  # goes on talking
        ([A, RED, SEVEN, A, RED, TWO, 0], [A, BLUE, SEVEN, A, RED, TWO, 0], 4, 0, 0),  # the other object of one colour
        ([A, RED, TWO, 0], [A, BLUE, TWO, 0], 1, 1, 1),  # wrong at first, and followed
        ([A, RED, 0, 9, 9], [A, BLUE, 0], 1, 1, 1),  # what comes after the end does not count
    ],
)
def test_what_can_become_of_a_caption(before, after, place, followed, held):
    at, new = torch.tensor([place]), torch.tensor([BLUE])
    found = word_follow(captions(before), captions(after), place=at, new_word=new)
    assert [each.item() for each in found] == [followed * held, followed, held]


def test_same_caption():
    truth = captions([A, RED, SEVEN, 0], [A, RED, 0], [A, RED, SEVEN, 0])
    said = torch.tensor([[A, RED, SEVEN, 0, 7, 7], [A, RED, SEVEN, 0, -1, -1], [A, RED, SEVEN, A, 0, -1]])
    assert same_caption(said, truth).tolist() == [1, 0, 0]
