"""Questions for a digit that is absent: drawn by their number, answered "not there", scored apart."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from saccade.config import to_dict
from saccade.data.scenes.drawing import COLOURS
from saccade.families.question.scenes import NOT_THERE, SceneData, SceneDataConfig
from saccade.families.question.task import QuestionTask
from saccade.models.facts import read_facts
from saccade.models.soft import SoftModel
from tiny_models import tiny_config

CONFIG = SceneDataConfig(glyphs="pack", absent=0.3, asks=4)


def small(**changes: object) -> dict[str, object]:
    config = to_dict(tiny_config(SoftModel, queries=10, answers=6))
    return {**config, **changes}


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_share_of_the_questions_is_for_a_digit_that_is_not_in_the_scene(split: str) -> None:
    batch = SceneData(CONFIG, split).take(torch.arange(800))  # type: ignore[arg-type]
    is_absent = batch.label == len(COLOURS)
    there = ((batch.layout.classes == batch.query[:, None]) & batch.layout.present).any(1)
    assert torch.equal(is_absent, ~there)
    assert 0.24 < float(is_absent.float().mean()) < 0.36
    assert len(batch.query[is_absent].unique()) == 10  # any digit may be missing
    plain = SceneData(dataclasses.replace(CONFIG, absent=0.0), split).take(torch.arange(800))  # type: ignore[arg-type]
    assert torch.equal(batch.images, plain.images)
    assert torch.equal(batch.label[there], plain.label[there])


def test_which_they_are_depends_on_the_number_alone() -> None:
    data = SceneData(CONFIG, "val")
    whole, part = data.take(torch.arange(60)), data.take(torch.tensor([41, 7]))
    assert part.query.tolist() == [int(whole.query[41]), int(whole.query[7])]
    assert part.label.tolist() == [int(whole.label[41]), int(whole.label[7])]


def test_the_model_has_one_answer_more_and_is_scored_on_both_kinds(tmp_path: Path) -> None:
    task = QuestionTask(model="soft", model_config=small(), data=to_dict(CONFIG))
    assert task.answers == (*COLOURS, NOT_THERE)
    with torch.no_grad():
        task.model.head.classify.bias.copy_(torch.tensor([0, 0, 0, 0, 0, 1e4]))  # it always says "not there"
    task.save_model(task.model, tmp_path / "model", {})
    assert read_facts(tmp_path / "model").answers[-1] == NOT_THERE
    found = QuestionTask.evaluate(task.model.eval(), to_dict(CONFIG), "val", limit=40, sweeps=0)
    assert found["metrics"]["accuracy_absent"] == 1
    assert found["metrics"]["accuracy"] == 0  # of questions for digits that are there
