"""The tool that puts models into the zoo."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from saccade import zoo
from saccade.models.facts import read_facts
from saccade.papers.results import Run
from tiny_models import save_tiny

TOOL = Path(__file__).parents[2] / "tools" / "ship.py"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool, with a zoo of its own."""
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "zoo")
    spec = importlib.util.spec_from_file_location("ship", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that has kept a model."""
    save_tiny(tmp_path / "run" / "model", data={"name": "mref"}, dtype="float16")
    return tmp_path / "run"


def ship(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, run: Path, *options: str) -> None:
    result = run.with_suffix(".json")
    result.write_text(json.dumps({"data": "mref", "split": "test", "n": 5, "metrics": {"accuracy": 0.5}}))
    fields = dict.fromkeys((field.name for field in dataclasses.fields(Run)), "")
    fields |= {"scores": {}, "commit": "abc", "sha256": read_facts(run / "model").sha256[:16]}
    monkeypatch.setattr(tool, "recorded_runs", lambda: {"run": Run(**{**fields, "command": "saccade train"})})
    monkeypatch.setattr(sys, "argv", ["ship.py", str(run), str(result), *options])
    tool.main()


def test_a_model_is_shipped_with_its_score(
    tool: ModuleType, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ship(tool, monkeypatch, run, "--name", "first", "--note", "trained in a test")
    facts = read_facts(tmp_path / "zoo" / "first")
    assert (facts.name, facts.revision) == ("first", "abc")
    assert facts.scores[0].metrics == {"accuracy": 0.5}
    assert facts.deviations[-1] == "trained in a test"
    assert facts.sha256 == facts.training["sha256"]
    assert capsys.readouterr().out.startswith("first: ")
