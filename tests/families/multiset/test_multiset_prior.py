"""The answer that most training pictures would be right with, and what it scores."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from multiset_stubs import PACK, Known, short_splits
from saccade.config import from_dict
from saccade.families.multiset.data import MultisetData, MultisetDataConfig
from saccade.families.multiset.prior import commonest_multiset
from saccade.families.multiset.scores import score_multisets
from saccade.families.multiset.table import Kind, MultisetRow, MultisetTable

CLASSES = ("a", "b", "c")
N, STOP = 20, 10


def table(*rows: tuple[str, str], kind: Kind = "multiset") -> MultisetTable:
    """Rows as (split, labels)."""
    made = tuple(
        MultisetRow(Path(f"{number}.png"), tuple(labels), split) for number, (split, labels) in enumerate(rows)
    )
    return MultisetTable("csv:t.csv", made, CLASSES, 3, kind)


def test_the_commonest_of_the_training_pictures_in_any_order():
    held = table(("train", "ab"), ("train", "c"), ("train", "ba"), ("val", "c"), ("test", "c"))
    assert commonest_multiset(held, CLASSES) == (0, 1)
    assert commonest_multiset(held, ("b", "c", "a")) == (0, 2)  # by the numbers of the model's own words


def test_a_list_is_as_it_stands():
    held = table(("train", "ab"), ("train", "ba"), ("train", "ba"), kind="list")
    assert commonest_multiset(held, CLASSES) == (1, 0)


def test_nothing_may_be_the_commonest_and_ties_go_to_the_first():
    assert commonest_multiset(table(("train", ""), ("train", "a"), ("train", "")), CLASSES) == ()
    assert commonest_multiset(table(("train", "c"), ("train", "a")), CLASSES) == (2,)


def test_without_training_pictures_in_these_words_there_is_none():
    assert commonest_multiset(table(("test", "a")), CLASSES) is None
    assert commonest_multiset(table(("train", "ab")), ("b",)) is None


@pytest.mark.parametrize("size", [N, 7])
def test_what_it_scores_stands_beside_the_model(size: int):
    """Said of every picture, it is right where the picture holds just that."""
    with short_splits(test=N):
        data = MultisetData(from_dict(MultisetDataConfig, PACK), "test")
    batch = data.take(torch.arange(N))
    habit = batch.labels[3][batch.labels[3] >= 0].tolist()  # what the fourth picture holds
    model = Known(batch, torch.full((N, 2), STOP), torch.zeros(N, 2, 1).long())
    found = score_multisets(model, data, (100, 100), habit=habit, batch_size=size).summary()
    alike = sum(sorted(row[row >= 0].tolist()) == sorted(habit) for row in batch.labels)
    prior = found["baselines"]["training_prior"]
    assert prior["exact_match"] == pytest.approx(alike / N)
    assert prior["exact_match"] > found["metrics"]["exact_match"] == 0  # who says nothing at all
    assert set(prior) == {"macro_f1", "exact_match", "macro_f1_by_presence"}
    model.done = 0
    assert "training_prior" not in score_multisets(model, data, (100, 100)).summary()["baselines"]
