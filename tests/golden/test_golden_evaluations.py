"""`tools/golden.py check` finds each number that differs and says where. It computes the scores; this test does not."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from golden_evaluations import STORED, cases, differences


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    return json.loads(STORED.read_text(encoding="utf-8"))


def test_there_is_a_score_of_every_shipped_model(stored: dict[str, Any]) -> None:
    assert set(stored) <= set(cases())
    assert len({name.partition("@")[0] for name in stored}) == 30
    assert all(scores["metrics"] and scores["attention"] and scores["intervals"] for scores in stored.values())


def test_equal_scores_have_no_difference(stored: dict[str, Any]) -> None:
    assert differences(stored, copy.deepcopy(stored), "all") == []
    assert differences({"a": float("nan"), "b": 0.5}, {"a": float("nan"), "b": 0.5 + 9e-7}, "all") == []


def test_each_difference_is_told_with_its_path() -> None:
    old = {"metrics": {"accuracy": 0.5, "gone": 1}, "intervals": [0.1, 0.2], "raw": 300.0, "glyphs": "pack"}
    new = {"metrics": {"accuracy": 0.500002, "new": 1}, "intervals": [0.1, 0.3], "raw": 300.0002, "glyphs": "disjoint"}
    assert differences(old, new, "m") == [
        "m.metrics.accuracy: stored 0.5, found 0.500002",
        "m.metrics.gone: stored 1, found nothing",
        "m.metrics.new: stored nothing, found 1",
        "m.intervals.1: stored 0.2, found 0.3",
        "m.glyphs: stored pack, found disjoint",
    ]
