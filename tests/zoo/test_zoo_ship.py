"""The tool that puts models into the zoo: whole, or beside one that shares their weights."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from saccade import zoo
from saccade.models.io.facts import Beside, read_facts
from saccade.models.io.folder import load_model, save_model, store_as
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


def grown(run: Path, part: str, to: Path) -> Path:
    """A run whose model is that of ``run`` but for the parameters of ``part``."""
    model, facts = load_model(run / "model")
    for parameter in model.get_submodule(part).parameters():
        parameter.add_(0.25)
    save_model(model, to / "model", facts)
    return to


def state(folder: Path) -> dict[str, torch.Tensor]:
    model: nn.Module = load_model(folder)[0]
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_a_model_is_shipped_whole_unless_it_is_asked_otherwise(
    tool: ModuleType, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ship(tool, monkeypatch, run, "--name", "first", "--note", "trained in a test")
    facts = read_facts(tmp_path / "zoo" / "first")
    assert (facts.name, facts.revision, facts.beside) == ("first", "abc", None)
    assert facts.scores[0].metrics == {"accuracy": 0.5}
    assert facts.deviations[-1] == "trained in a test"
    assert facts.sha256 == facts.training["sha256"]
    other = grown(run, "head", tmp_path / "other")
    ship(tool, monkeypatch, other, "--name", "second", "--beside", "first")
    assert read_facts(tmp_path / "zoo" / "second").beside == Beside("first", facts.sha256)
    assert_equal(state(tmp_path / "zoo" / "second"), state(other / "model"))
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("first: ")
    assert said[1].endswith(" bytes, the rest is in first")


def test_those_beside_a_model_outlive_its_successor(
    tool: ModuleType, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(tool, monkeypatch, run, "--name", "first")
    other = grown(run, "head", tmp_path / "other")
    ship(tool, monkeypatch, other, "--name", "second", "--beside", "first")
    ship(tool, monkeypatch, grown(run, "attention", tmp_path / "successor"), "--name", "first")
    first, second = (read_facts(tmp_path / "zoo" / name) for name in ("first", "second"))
    assert second.beside is not None
    assert second.beside.sha256 == first.sha256
    assert second.training["sha256"] == read_facts(other / "model").sha256
    assert_equal(state(tmp_path / "zoo" / "second"), state(other / "model"))


def test_a_model_that_others_lie_beside_must_be_whole(
    tool: ModuleType, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(tool, monkeypatch, run, "--name", "first")
    ship(tool, monkeypatch, run, "--name", "third")
    ship(tool, monkeypatch, grown(run, "head", tmp_path / "other"), "--name", "second", "--beside", "first")
    with pytest.raises(SystemExit, match="second lies beside first, which so must be whole"):
        ship(tool, monkeypatch, run, "--name", "first", "--beside", "third")
    load_model(tmp_path / "zoo" / "second")


def test_what_was_rounded_after_it_was_scored_is_not_shipped(
    tool: ModuleType, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(tool, monkeypatch, run, "--name", "first")
    store_as(run / "model", "int8")
    with pytest.raises(SystemExit, match="run"):
        tool.main()
    ship(tool, monkeypatch, run, "--name", "first")  # its result is recorded anew
    facts = read_facts(tmp_path / "zoo" / "first")
    assert (facts.dtype, facts.sha256) == ("int8", read_facts(run / "model").sha256)


def test_runs_are_rounded_before_they_are_scored(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import store_as as rounding

    before, wide = (run / "model" / "model.safetensors").stat().st_size, read_facts(run / "model")
    monkeypatch.setattr(sys, "argv", ["store_as.py", "int8", str(run)])
    rounding.main()
    after = (run / "model" / "model.safetensors").stat().st_size
    assert read_facts(run / "model").dtype == "int8" != wide.dtype
    assert capsys.readouterr().out == f"{run}: {before:,} → {after:,} bytes\n"
    monkeypatch.setattr(sys, "argv", ["store_as.py", "int4", str(run)])
    with pytest.raises(SystemExit):
        rounding.main()
