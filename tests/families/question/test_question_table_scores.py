"""Scores on given pictures of models whose truth is known: one that sees everything, one that never reads the query."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from attribute_stubs import OneLook

from saccade import geometry
from saccade.data import Row, Table
from saccade.families.question.readers import COLUMNS
from saccade.families.question.table_scores import TableScoring, training_prior
from saccade.families.question.tables import TableData, TableDataConfig
from saccade.tasks.evaluate import evaluate
from saccade.trace import Act, QuestionOutput
from small_tables import SIDE, SPLITS, SQUARE, write_table

SIZE, GRID = (SIDE, SIDE), (8, 8)
N = 2 * len(SPLITS["test"])
MAPS = {"true_positive_strength", "pointing", "iou", "pr_auc"}
CLICKS = {"pointing_at", "attention_near", "distance"}
ANSWERS = ("blue", "green", "red")


class Seer(OneLook):
    """Finds the squares by their colour, answers with that of the one asked for, and looks at a cell inside it."""

    def __init__(self, *, answers=3, multi_label=False):
        super().__init__(geometry.scale_shift((SIDE / GRID[1], SIDE / GRID[0]), (0.0, 0.0)))
        self.answers, self.multi_label = answers, multi_label

    def ask(self, encoding, query):
        """Query 0 is the lower half, 1 the upper."""
        coloured = (encoding.amax(1) - encoding.amin(1)) > 0.2  # (B,H,W)
        rows = torch.arange(SIDE) >= SIDE // 2
        half = torch.where(query[:, None] == 0, rows, ~rows)  # (B,H)
        found = (coloured & half[:, :, None]).double()  # (B,H,W)
        shares = (encoding.double() * found[:, None]).sum((2, 3))  # (B,3) red, green, blue
        answer = shares.flip(1).argmax(1)  # blue, green, red
        logits = 5.0 * F.one_hot(answer, self.answers).float()
        if self.multi_label:  # "square" holds always
            logits[:, -1] = 3.0
        cells = F.avg_pool2d(found[:, None], SIDE // GRID[0])[:, 0]  # (B,8,8)
        cells = cells + F.avg_pool2d(cells[:, None], 3, stride=1, padding=1)[:, 0]  # its middle
        weights = F.one_hot(cells.flatten(1).argmax(1), GRID[0] * GRID[1]).float().unflatten(1, GRID)
        return QuestionOutput(logits, {"cell": Act(weights=weights)})


class Deaf(Seer):
    """Answers and looks as if the upper square had been asked for."""

    def ask(self, encoding, query):
        """Whatever was asked."""
        return super().ask(encoding, torch.ones_like(query))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def opened(folder, name, **options):
    path = folder / name / "table.csv"
    if not path.exists():
        write_table(path.parent, **options)
    return TableData(TableDataConfig(f"csv:{path}", size=SIZE), "test")


def scored(model, data, **options):
    return evaluate(TableScoring(model.eval(), data, **{"sweeps": 0, **options}))


@pytest.fixture(scope="module")
def boxes(folder):
    return opened(folder, "boxes")


@pytest.fixture(scope="module")
def points(folder):
    return opened(folder, "points", evidence="point")


@pytest.fixture(scope="module")
def seen(boxes):
    return scored(Seer(), boxes, sweeps=3)


def test_who_sees_everything_is_right_and_follows_the_question(seen):
    """Asked for the other square, where it has another colour, the answer is never that of the first."""
    assert seen["n"] == N
    assert seen["counts"]["deletion"] == 3
    assert seen["baselines"]["training_prior"] == {"accuracy": pytest.approx(1 / 3)}  # all colours are as frequent
    assert seen["metrics"]["accuracy"] == 1
    assert seen["metrics"]["swapped_query"] == 0
    assert seen["metrics"]["accuracy_by_query"] == {"lower": 1.0, "upper": 1.0}
    assert seen["counts"]["accuracy_by_query"] == {"lower": 9, "upper": 9}
    assert seen["counts"]["swapped_query"] == 12  # three of nine pictures have two squares of one colour


def test_who_never_reads_the_query_is_found_out(boxes):
    """Right about every upper square, and about the lower ones that share its colour: 9 + 3 of 18.

    Of the twelve questions with another answer, the six about upper squares are answered right whatever is asked.
    """
    found = scored(Deaf(), boxes)["metrics"]
    assert found["accuracy"] == pytest.approx(12 / 18)
    assert found["swapped_query"] == pytest.approx(6 / 12)
    assert found["accuracy_by_query"] == {"lower": pytest.approx(1 / 3), "upper": 1.0}


def test_several_labels_are_ranked(folder):
    data = opened(folder, "several", several=True)
    assert data.answers == (*ANSWERS, "square")
    found = scored(Seer(answers=4, multi_label=True), data)
    assert found["metrics"]["weighted_map"] == found["metrics"]["weighted_map_all_point"] == 1
    assert found["metrics"]["top1"] == 1
    assert found["metrics"]["swapped_query"] < 0.9
    assert "accuracy" not in found["metrics"]
    habit = found["baselines"]["training_prior_by_query"]
    assert habit["top1"] == 1  # "square" always holds
    assert habit["weighted_map"] == pytest.approx((18 * 1 + 18 / 3) / 36)
    json.dumps(found, allow_nan=False)


def test_boxes_are_evidence(seen, boxes):
    assert set(seen["attention"]) == MAPS | {"deletion", "insertion", "by_look"}
    assert seen["attention"]["pointing"] == 1
    area = SQUARE**2 / SIDE**2
    assert seen["baselines"]["uniform"]["true_positive_strength"] == pytest.approx(area, rel=1e-3)
    strength = {name: held.get("true_positive_strength") for name, held in seen["baselines"].items()}
    assert strength["uniform"] < strength["shuffled"] < seen["attention"]["true_positive_strength"]
    assert seen["attention"]["true_positive_strength"] <= strength["grid_oracle"] + 1e-6
    assert not {"box_centre", "part_prior"} & seen["baselines"].keys()  # the box is the evidence itself


def test_clicks_are_scored_by_nearness_beside_every_position(points):
    found = scored(Seer(), points)
    assert set(found["attention"]) == MAPS | CLICKS | {"by_look", "pointing_at_by_query"}
    by_query, prior = found["attention"]["pointing_at_by_query"], found["baselines"]["part_prior"]
    assert by_query.keys() == prior["pointing_at_by_query"].keys() == found["metrics"]["accuracy_by_query"].keys()
    asked = found["counts"]["accuracy_by_query"]
    mean = sum(by_query[word] * asked[word] for word in asked) / sum(asked.values())
    assert mean == pytest.approx(found["attention"]["pointing_at"])
    exact = found["baselines"]["part_prior_exact"]["pointing_at_by_query"]
    for word, each in found["against"]["maps"]["by_query"].items():
        assert (each["n"], each["value"]) == (asked[word], by_query[word])
        assert each["chance_value"] == max(prior["pointing_at_by_query"][word], exact[word]), word
    near = {name: held["attention_near"] for name, held in found["baselines"].items() if "attention_near" in held}
    assert near["uniform"] < found["attention"]["attention_near"] <= near["grid_oracle"] + 1e-6
    assert near["part_prior_exact"] == 1  # squares always lie at one place of the box of both
    assert near["box_centre_exact"] == 0  # between the two
    diagonal = math.hypot(SQUARE, 24 + SQUARE)
    assert found["baselines"]["box_centre_exact"]["distance"] == pytest.approx(12 / diagonal, rel=0.1)
    assert found["attention"]["distance"] < found["baselines"]["uniform"]["distance"] / 3


PARTS, SHADES = ("crown", "wing", "tail"), ("black", "red")


def row(query, *labels, split="train", box=None, point=None):
    return Row(Path("bird.png"), labels, split, query=query, box=box, point=point)


def prior_of(*rows, queries=PARTS, answers=SHADES):
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
