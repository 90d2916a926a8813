"""What training rows know before any picture: shares of answers and the usual place, worked out by hand."""

from pathlib import Path

import pytest
import torch

from saccade.data import Row, Table
from saccade.families.question.readers import COLUMNS
from saccade.families.question.table_scores import training_prior

QUERIES, ANSWERS = ("crown", "wing", "tail"), ("black", "red")


def row(query, *labels, split="train", box=None, point=None):
    return Row(Path("bird.png"), labels, split, query=query, box=box, point=point)


def prior_of(*rows, queries=QUERIES, answers=ANSWERS):
    return training_prior(Table("csv:x", rows, COLUMNS, queries, answers), queries, answers)


def test_shares_of_answers_by_hand():
    """Crowns: red, red, black. Wings: black. Nothing is known of tails, which get what holds of all four."""
    prior = prior_of(row("crown", "red"), row("crown", "red"), row("crown", "black"), row("wing", "black"))
    assert prior.overall.tolist() == [0.5, 0.5]
    assert prior.answers(torch.tensor([1, 0, 2])).tolist() == [
        pytest.approx([1, 0]),
        pytest.approx([1 / 3, 2 / 3]),
        pytest.approx([0.5, 0.5]),
    ]


def test_several_answers_may_hold_at_once():
    prior = prior_of(row("crown", "red", "black"), row("crown", "red"))
    assert prior.by_query[0].tolist() == [0.5, 1.0]


def test_only_training_rows_in_the_words_of_the_model_count():
    rows = (
        row("crown", "red"),
        row("crown", "black", split="test"),
        row("beak", "black"),
        row("crown", "green"),  # asked, and none of the known answers holds
    )
    assert prior_of(*rows).by_query[0].tolist() == [0, 0.5]
    assert prior_of(row("crown", "red", split="test"), row("beak", "red")) is None


def test_the_usual_place_by_hand():
    """Crowns at a quarter and at three quarters of the width, at the top: on the mean in the middle of the top edge."""
    prior = prior_of(
        row("crown", "red", box=(0, 0, 8, 4), point=(2, 0)),
        row("crown", "red", box=(10, 10, 14, 20), point=(13, 10)),
        row("wing", "red", box=(0, 0, 1, 1)),
    )
    boxes = torch.tensor([[100.0, 50.0, 200.0, 150.0]]).expand(2, 4)
    found = prior.points(torch.tensor([0, 1]), boxes)
    assert found[0].tolist() == [150, 50]
    assert found[1].isnan().all()
    assert prior.points(torch.tensor([0]), boxes[:1] * torch.nan).isnan().all()
