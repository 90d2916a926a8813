"""What a question model says about its own maps: whether they were found to point better than a blind map."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

import saccade
from saccade.families.answering import blind_queries
from saccade.models.facts import CONFIG, Score, read_facts
from tiny_models import save_tiny, tiny_facts

BETTER = {"n": 700, "value": 0.74, "chance": "part_prior", "chance_value": 0.12, "interval": [0.58, 0.66]}
LEVEL = {"n": 1760, "value": 0.47, "chance": "part_prior_exact", "chance_value": 0.51, "interval": [-0.08, 0.01]}
SAID = (
    "for '1' the map was not found to point better than where the part usually is: its peak was in the right place for "
    "47 % of 1,760 test questions, that guess for 51 %"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose maps were better than a blind one when it was asked for 0, and not when for 1."""
    made = save_tiny(tmp_path / "tiny")
    config = json.loads((made / CONFIG).read_text())
    against = {"maps": {"by_query": {"0": BETTER, "1": LEVEL}}}
    config["scores"] = [{"data": "own", "split": "test", "n": 2460, "against": against}]
    (made / CONFIG).write_text(json.dumps(config))
    return made


def test_only_questions_whose_maps_are_no_better_have_a_sentence(folder: Path) -> None:
    assert blind_queries(read_facts(folder)) == {"1": SAID}
    assert blind_queries(tiny_facts()) == {}
    worse = LEVEL | {"chance": "a rule of tomorrow", "interval": [-0.2, -0.1]}
    score = Score("own", "test", 1, against={"maps": {"by_query": {"1": worse}}})
    (said,) = blind_queries(dataclasses.replace(tiny_facts(), scores=(score,))).values()
    assert "not found to point better than a map that never looks: " in said


def test_an_answer_says_so_about_its_map(folder: Path) -> None:
    predictor, picture = saccade.load(folder, device="cpu"), torch.zeros(3, 24, 24)
    assert SAID not in predictor.look(picture, ask=0).notes
    seen = predictor.look(picture, ask=1)
    assert SAID in seen.remarks
    assert SAID in seen.notes
    assert SAID in seen.to_json()["notes"]
    assert [SAID in each.notes for each in predictor.look_many([picture, picture], ask=1)] == [True, True]
    given = predictor.look(picture, ask=1, attention=seen.trace.as_given())
    assert SAID not in given.notes  # its weights are not the model's own
