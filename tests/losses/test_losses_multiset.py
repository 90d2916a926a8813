"""Multiset rewards and losses: against the paper's loop, by hand, and whatever order the labels come in."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.losses.multiset import (
    count_loss,
    list_rewards,
    multiset_loss,
    multiset_reward,
    multiset_rewards,
    object_loss,
    sequence_cross_entropy,
    single_object_loss,
    stop_cross_entropy,
)

Near = Callable[..., None]
CLASSES, STOP = 3, 3
classes_said = st.lists(st.integers(0, STOP), min_size=1, max_size=6)
some_labels = st.lists(st.integers(0, CLASSES - 1), max_size=5)


def padded(labels: list[int], width: int = 6) -> Tensor:
    return torch.tensor([labels + [-1] * (width - len(labels))])


def paper_reward(said: list[int], labels: list[int]) -> list[float]:
    """Section 4.2, as the paper writes it: a multiset A from which labels are taken."""
    available, rewards = list(labels), []
    for one in said:
        rewards.append(1.0 if one in available else -1.0)
        if one in available:
            available.remove(one)
    return rewards


@given(classes_said, some_labels)
def test_the_reward_is_the_papers(said: list[int], labels: list[int]) -> None:
    assert multiset_reward(torch.tensor([said]), padded(labels)).tolist() == [paper_reward(said, labels)]


def test_lists_have_an_order() -> None:
    said, labels = torch.tensor([[1, 2, 0, STOP]]), torch.tensor([[1, 0, 0]])
    rewards = list_rewards(said, labels, STOP + 1)  # (1,T,Y)
    assert rewards.gather(2, said[..., None])[..., 0].tolist() == [[1, -1, 1, -1]]


@given(said=classes_said, labels=some_labels)
def test_the_rewards_of_all_classes_are_those_of_saying_each_instead(said: list[int], labels: list[int]) -> None:
    result = multiset_rewards(torch.tensor([said]), padded(labels), STOP + 1)  # (1,T,Y)
    for step, other in itertools.product(range(len(said)), range(STOP + 1)):
        instead = [*said[:step], other, *said[step + 1 :]]
        assert result[0, step, other] == paper_reward(instead, labels)[step]


def log_softmax(logits: Tensor) -> list[list[float]]:
    """(1,T,Y) in double by Python's own logarithm."""
    rows = logits[0].tolist()
    return [[x - math.log(sum(math.exp(y) for y in row)) for x in row] for row in rows]


@pytest.fixture
def logits() -> Tensor:
    return torch.randn(1, 4, CLASSES + 1, dtype=torch.float64)


@pytest.mark.parametrize("m", [0, 1, 3])
def test_stop_is_taught_one_step_behind_the_last_label(m: int, logits: Tensor, assert_near: Near) -> None:
    loss = stop_cross_entropy(logits, padded([0] * m))
    assert_near(loss, [-log_softmax(logits)[m][STOP]])


def test_sequences_by_hand(logits: Tensor, assert_near: Near) -> None:
    log_p = log_softmax(logits)
    expected = -(log_p[0][2] + log_p[1][0] + log_p[2][STOP])
    assert_near(sequence_cross_entropy(logits, padded([2, 0])), expected)
    assert_near(sequence_cross_entropy(logits, torch.tensor([[-1, 2, -1, 0]])), expected)  # padding in any place
    swapped = sequence_cross_entropy(logits, padded([0, 2]))
    assert abs(swapped.item() - expected) > 1e-3  # here the order does matter


@given(st.lists(st.integers(0, STOP), min_size=4, max_size=4), st.lists(st.integers(0, 2), max_size=3))
def test_the_multiset_loss_follows_the_oracle(said: list[int], labels: list[int]) -> None:
    """Enumerated: at each step the labels that are still free, each as likely as any other."""
    logits = torch.randn(1, 4, CLASSES + 1, dtype=torch.float64)
    log_p, free, expected = log_softmax(logits), list(labels), 0.0
    for t in range(len(labels)):
        expected -= sum(log_p[t][label] for label in free) / len(free)
        if said[t] in free:
            free.remove(said[t])
    expected -= log_p[len(labels)][STOP]
    assert multiset_loss(logits, torch.tensor([said]), padded(labels)).item() == pytest.approx(expected, rel=1e-9)


def test_counts_by_hand(assert_near: Near) -> None:
    logits = torch.randn(1, 2, 3, dtype=torch.float64)  # two classes, up to two of each
    log_p = log_softmax(logits)
    assert_near(count_loss(logits, padded([1, 1])), -(log_p[0][0] + log_p[1][2]))
    assert_near(count_loss(logits, padded([1, 1, 1, 0])), -(log_p[0][1] + log_p[1][2]))  # three count as two
    assert_near(count_loss(logits, padded([])), -(log_p[0][0] + log_p[1][0]))


NOWHERE = [math.nan] * 4
SOMEWHERE = [0.0, 0.0, 5.0, 5.0]


def test_a_picture_without_objects_teaches_nothing() -> None:
    """Odds of 2 : 1 for the wrong class, then an empty picture that is surely wrong about everything."""
    logits = torch.tensor([[math.log(2), 0.0], [9.0, 0.0]], requires_grad=True)
    result = single_object_loss(logits, torch.tensor([[1, -1], [-1, -1]]))
    assert float(result["loss"].detach()) == pytest.approx(math.log(3))
    assert float(result["single_accuracy"]) == 0
    result["loss"].backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[2 / 3, -2 / 3], [0.0, 0.0]]))


def test_a_label_without_a_box_teaches_nothing_of_its_place() -> None:
    """Of four places one has a label without a box, one no label: two count, one of them named rightly."""
    logits = torch.zeros(2, 2, 2)
    logits[0, 0, 0] = math.log(3)
    logits.requires_grad_()
    labels = torch.tensor([[0, 1], [1, -1]])
    boxes = torch.tensor([[SOMEWHERE, SOMEWHERE], [NOWHERE, SOMEWHERE]])
    result = object_loss(logits, labels, boxes)
    assert float(result["object_loss"].detach()) == pytest.approx((math.log(4 / 3) + math.log(2)) / 2)
    assert float(result["object_accuracy"]) == 0.5
    result["object_loss"].backward()
    taught = torch.tensor([[[-1 / 8, 1 / 8], [1 / 4, -1 / 4]], [[0.0, 0.0], [0.0, 0.0]]])
    torch.testing.assert_close(logits.grad, taught)
