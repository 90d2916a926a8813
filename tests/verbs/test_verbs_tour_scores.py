"""The numbers of a stop: which scores and baselines stand in its tables, what each rests on, and its headline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from saccade.errors import CheckpointError
from saccade.models.io.facts import Score, read_facts
from saccade.verbs.touring.scores import MODEL, StopScores, as_score, headline, recorded_score
from tiny_models import save_tiny

SCORE = Score(
    data="x", split="test", n=50, metrics={"accuracy": 0.75, "by_scale": {"small": 0.5}}, attention={"pointing": 0.5},
    baselines={"uniform": {"pointing": 0.125}, "blank": {}, "unnamed": {"pointing": 1.0}},
    intervals={"accuracy": [0.625, 0.875]}, counts={"pointing": 40},
)  # fmt: skip
HEADINGS = {"accuracy": "right answers", "by_scale": "by scale", "gone": "gone", "pointing": "points at it"}


def scores() -> StopScores:
    return StopScores.of(SCORE, "scenes", HEADINGS, {"uniform": "evenly", "blank": "with nothing", "none": "nobody"})


def test_only_scores_that_are_numbers_and_baselines_that_have_some_are_shown() -> None:
    found = scores()
    assert dict(found.headings) == {"accuracy": "right answers", "pointing": "points at it"}
    assert found.rows == {MODEL: {"accuracy": 0.75, "pointing": 0.5}, "evenly": {"accuracy": None, "pointing": 0.125}}
    plain = found.plain_table("title")
    assert plain.columns == ("", "right answers", "points at it")
    assert plain.rows == [[MODEL, "75.0", "50.0"], ["evenly", "–", "12.5"]]


def test_baselines_that_were_made_on_one_of_several_grids_are_left_out() -> None:
    looks = {"by_look": {"gate": {"pointing": 0.1}, "last": {"pointing": 0.2}}}
    held = {"uniform": {"pointing": 0.1}, "grid_oracle": {"pointing": 0.3}}
    old = replace(SCORE, attention={**SCORE.attention, **looks}, baselines=held)
    names = {"uniform": "evenly", "grid_oracle": "at best"}
    assert list(StopScores.of(old, "scenes", HEADINGS, names).rows) == [MODEL, "evenly"]
    new = replace(old, definition=2)
    assert list(StopScores.of(new, "scenes", HEADINGS, names).rows) == [MODEL, "evenly", "at best"]


def test_every_number_says_how_many_examples_it_rests_on() -> None:
    figures = scores().figures(("pointing", "accuracy", "gone"))
    assert [(heading, cell.note) for heading, cell in figures] == [
        ("points at it", "n = 40 scenes"),
        ("right answers", "n = 50 scenes"),
    ]
    table = scores().table("caption")
    assert [cell.note for cell in table.rows[0][1:]] == ["n = 50 scenes", "n = 40 scenes"]


def test_the_headline_sets_here_beside_recorded_and_published(tmp_path: Path) -> None:
    facts = replace(read_facts(save_tiny(tmp_path / "m")), architecture="soft", data={"name": "mref"})
    assert headline("m", facts, "accuracy", SCORE) == ["m", "accuracy", "75.0 [62.5, 87.5]", "50", "–", "82.94"]
    known = replace(facts, scores=(replace(SCORE, n=10_000),), data={"name": "mine"})
    assert headline("m", known, "accuracy", None) == ["m", "accuracy", "–", "–", "75.00 (10,000)", "–"]
    assert headline("m", known, "top5", None)[4] == "– (10,000)"


def test_a_model_without_a_record_is_named(tmp_path: Path) -> None:
    facts = read_facts(save_tiny(tmp_path / "m"))
    with pytest.raises(CheckpointError, match="m: shipped without a recorded score"):
        recorded_score("m", facts)
    assert recorded_score("m", replace(facts, scores=(SCORE,))) is SCORE


def test_an_evaluation_becomes_a_score_without_what_a_score_does_not_hold() -> None:
    found = {"data": "mref", "split": "test", "n": 3, "metrics": {"accuracy": 1.0}, "glyphs": "pack", "beams": 2}
    assert as_score(found) == Score(data="mref", split="test", n=3, metrics={"accuracy": 1.0}, glyphs="pack")
