"""What evaluate measured as tables, and as a section of a page."""

from __future__ import annotations

import torch

from saccade.metrics.labels import details_of
from saccade.show.score_tables import (
    confusion_section,
    score_tables,
)
from saccade.show.tables import Cell, Table

RESULT = {
    "model": "m", "data": "csv", "split": "test", "protocol": None, "n": 1055, "seed": 0, "definition": 2,
    "metrics": {"accuracy": 0.5, "accuracy_by_query": {"crown": 0.75, "belly": None}, "length_raw": 8.514},
    "attention": {
        "pointing": 0.4, "deletion": 0.3, "pr_auc": 0.2,
        "by_look": {"gate": {"pointing": 0.1, "iou": 0.05}, "last": {"pointing": 0.2, "iou": 0.25}},
    },
    "baselines": {
        "training_prior": {"accuracy": 0.3},
        "uniform": {"pointing": 0.02, "deletion": 0.35, "pr_auc": 0.02},
        "box_centre_exact": {"pointing": 0.07, "pr_auc": 0.01},
    },
    "intervals": {"accuracy": [0.47, 0.531], "length_raw": [8.1, 8.94], "pointing": [None, None]},
    "counts": {"accuracy": 1055, "pointing": 1055, "deletion": 50, "accuracy_by_query": {"crown": 4}},
}  # fmt: skip


def shown(table: Table) -> list[list[str]]:
    return [[cell.shown if isinstance(cell, Cell) else str(cell) for cell in row] for row in table.rows]


def by_title(tables: list[Table]) -> dict[str, Table]:
    return {table.caption: table for table in tables}


def test_each_score_stands_beside_its_interval_and_its_n() -> None:
    tables = by_title(score_tables(RESULT))
    assert shown(tables["m on csv test, n 1,055, seed 0"]) == [
        ["accuracy", "50.0\u202f%", "47.0–53.1", "1,055"],
        ["accuracy_by_query.crown", "75.0\u202f%", "", "4"],
        ["accuracy_by_query.belly", "–", "", ""],
        ["length_raw", "8.51", "8.1–8.94", ""],
    ]
    attention = tables["attention"]
    assert shown(attention)[:2] == [["pointing", "40.0\u202f%", "", "1,055"], ["deletion ↓", "30.0\u202f%", "", "50"]]
    assert attention.note == "↓ low is good"
    assert tables["m on csv test, n 1,055, seed 0"].note == ""


def test_scores_are_compared_among_those_that_have_them() -> None:
    tables = by_title(score_tables(RESULT))
    assert [row[0] for row in tables["answers beside baselines"].rows] == ["model", "training prior"]
    maps = tables["attention beside baselines"]
    assert maps.columns == ("who", "pointing", "deletion ↓", "pr auc")
    assert [row[0] for row in maps.rows] == ["model", "uniform", "box centre exact"]
    assert shown(maps)[2][2] == "–"


def told(classes: int) -> dict:
    """Two answers a class; class 3 is taken for class 5 both times, class 1 for class 0 once."""
    labels = torch.arange(classes).repeat(2)
    said = labels.clone()
    said[3], said[3 + classes], said[1] = min(5, classes - 1), min(5, classes - 1), 0
    half = torch.full((2 * classes,), 0.5)
    return details_of(said, labels, half, half / 2, [f"class {number}" for number in range(classes)])


def test_of_many_classes_the_most_confused_pairs_are_listed() -> None:
    found = told(200)
    assert "matrix" not in found["confusion"]  # too large to write down
    section = confusion_section(found["confusion"], 200)
    assert section is not None
    assert section.title == "Confusions"
    assert [list(row) for row in section.blocks[0].rows] == [["class 3", "class 5", 2], ["class 1", "class 0", 1]]
    assert "200 classes" in section.text


def test_of_few_classes_the_matrix_is_shown() -> None:
    section = confusion_section(told(6)["confusion"], 6)
    assert section is not None
    assert section.title == "Confusion matrix"
    assert list(section.blocks[0].rows[3]) == ["class 3", 0, 0, 0, 0, 0, 2]
