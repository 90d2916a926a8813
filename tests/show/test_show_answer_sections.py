"""Sections about answers: a matrix of few classes, pairs of many, and nothing where nothing is known."""

from __future__ import annotations

import torch

from saccade.metrics.labels import details_of
from saccade.show.report_tables import Notes
from saccade.show.score_tables import (
    caption,
    classes_section,
    confusion_section,
    mistakes_section,
    rests_on_section,
)


def told(classes: int) -> dict:
    """Two answers a class; class 3 is taken for class 5 both times, class 1 for class 0 once."""
    labels = torch.arange(classes).repeat(2)
    said = labels.clone()
    said[3], said[3 + classes], said[1] = min(5, classes - 1), min(5, classes - 1), 0
    half = torch.full((2 * classes,), 0.5)
    return details_of(said, labels, half, half / 2, [f"class {number}" for number in range(classes)]).to_json()


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


def test_between_both_the_matrix_is_written_down_and_pairs_are_shown() -> None:
    found = told(30)
    assert len(found["confusion"]["matrix"]) == 30
    section = confusion_section(found["confusion"], 30)
    assert section is not None
    assert section.title == "Confusions"


def test_the_worst_classes_come_first_and_those_left_out_are_counted() -> None:
    section = classes_section(told(230)["per_class"], "x.json")
    assert section is not None
    assert [row[0] for row in section.blocks[0].rows[:2]] == ["class 3", "class 1"]
    assert len(section.blocks[0].rows) == 200
    assert "30 better ones are in x.json" in section.text


def test_a_class_that_is_never_said_or_never_there_has_a_dash() -> None:
    per_class = {
        "a": {"pictures": 0, "recall": None, "precision": 0.0},
        "b": {"pictures": 2, "recall": 0.5, "precision": None},
    }
    section = classes_section(per_class, "x.json")
    assert section is not None
    assert "no such picture, or never said" in section.blocks[0].html(Notes())


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert confusion_section({}, 0) is None
    assert confusion_section({"mistakes": []}, 300) is None
    assert classes_section({}, "x.json") is None
    assert rests_on_section({}) is None
    assert "No mistake was made on test pictures" in mistakes_section([], "test pictures").text


def test_what_stands_below_a_mistake() -> None:
    mistake = {"asked": "crown", "true": "red", "said": "blue", "confidence": 0.75, "of_true": 0.125}
    assert caption(mistake) == "crown: red, said blue (75%; red 12%)"
    assert caption({"true": "red", "said": "blue", "confidence": 0.75}) == "red, said blue (75%)"


def test_what_an_answer_rests_on_begins_with_what_was_found() -> None:
    rests = {
        "n": 90,
        "accuracy": {"unchanged": 0.9, "guess": 0.3},
        "intervals": {"unchanged": [0.8, 0.95]},
        "says": "it reads",
    }
    section = rests_on_section(rests)
    assert section is not None
    assert section.text.startswith("it reads.\n\n")
    assert [row[0] for row in section.blocks[0].rows] == ["the whole picture", "guessing"]
