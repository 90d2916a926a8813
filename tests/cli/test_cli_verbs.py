"""The other verbs: thin over their Python functions, quick to start, honest about what is missing."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import saccade
from saccade.commands.door import app
from saccade.errors import ConfigError


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def trained_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> tuple[Result, list[str]]:
    """The overrides that ``saccade train`` comes to; nothing is trained."""
    from saccade.verbs.training import run as verb

    came: list[str] = []

    def prepare(recipe: object, settings: Any, **options: object) -> None:
        came.extend(settings.overrides)
        raise ConfigError("enough")

    monkeypatch.setattr(verb, "prepare", prepare)
    return run("train", *words, "--out", tmp_path), came


def test_train_takes_the_usual_numbers_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from saccade.engine.recipe import load_recipe

    words = ["--epochs", "3", "--batch-size", "8", "--lr", "1e-4", "--set", "seed=1"]
    _, overrides = trained_with(monkeypatch, tmp_path, "attributes", *words)
    recipe = load_recipe("attributes", overrides=overrides)
    phase = recipe.phases[0]
    assert (phase.epochs, phase.steps, phase.validate_every, phase.optimizer.lr) == (3, None, 1, 1e-4)
    assert (recipe.batch_size, recipe.seed) == (8, 1)
    _, overrides = trained_with(monkeypatch, tmp_path, "attributes", "--steps", "5")
    phase = load_recipe("attributes", overrides=overrides).phases[0]
    assert (phase.epochs, phase.steps, phase.validate_every) == (None, 5, None)  # one epoch is not one step


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["attributes", "--epochs", "3", "--steps", "5"], "give --epochs or --steps, not both"),
        (["hsal-mnist-multiset", "--steps", "5"], "has the phases"),
        (["--resume", "--lr", "0.1"], "keeps its recipe"),
    ],
)
def test_train_refuses_numbers_that_it_cannot_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], said: str
) -> None:
    result, _ = trained_with(monkeypatch, tmp_path, *words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_train_names_the_phase_that_numbers_are_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from saccade.engine.recipe import load_recipe

    names = [phase.name for phase in load_recipe("hsal-mnist-multiset").phases]
    words = ["hsal-mnist-multiset", "--phase", names[-1], "--steps", "5"]
    _, overrides = trained_with(monkeypatch, tmp_path, *words)
    assert f"phases.{len(names) - 1}.steps=5" in overrides


def test_train_offline_fetches_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from saccade.backbones.hub import is_offline

    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "")
    trained_with(monkeypatch, tmp_path, "soft-mref")
    assert not is_offline()
    trained_with(monkeypatch, tmp_path, "soft-mref", "--offline")
    assert is_offline()


def test_train_passes_everything_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called: dict[str, object] = {}

    def train(recipe: str | None, **options: object) -> SimpleNamespace:
        called.update(options, recipe=recipe)
        return SimpleNamespace(stopped="finished", model=None)

    monkeypatch.setitem(saccade.__dict__, "train", train)
    result = run(
        "train", "soft-mref", "--out", tmp_path, "--set", "seed=1", "--set", "a.b=2", "--max-minutes", "1.5", "--resume"
    )
    assert result.exit_code == 0
    assert called["recipe"] == "soft-mref"
    assert called["overrides"] == ["seed=1", "a.b=2"]
    assert called["out"] == tmp_path
    assert (called["resume"], called["accept_changed_data"]) == (True, False)
    assert called["max_minutes"] == 1.5
    assert called["seed"] is None
    run("train", "--out", tmp_path, "--resume", "--accept-changed-data")
    assert (called["resume"], called["accept_changed_data"]) == (True, True)
    assert run("train", "soft-mref").exit_code == 2  # no --out
    stopped = SimpleNamespace(stopped="signal", model=None)
    monkeypatch.setitem(saccade.__dict__, "train", lambda recipe, **options: stopped)
    result = run("train", "soft-mref", "--out", tmp_path)
    assert result.exit_code == 130  # `train && evaluate` must not go on
    assert "evaluate" not in result.stderr


def test_train_ends_with_a_command_that_can_be_pasted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = SimpleNamespace(stopped="finished", model=tmp_path)
    monkeypatch.setitem(saccade.__dict__, "train", lambda recipe, **options: done)
    result = run("train", "attributes", "--out", "my runs/1", "--data", "csv:my pictures/t.csv")
    assert "saccade evaluate 'my runs/1' --data 'csv:my pictures/t.csv'" in " ".join(result.output.split())
    assert "--data" not in run("train", "soft-mref", "--out", "runs/1", "--data", "mdist").output
    monkeypatch.setattr("saccade.verbs.training.run.data_of", lambda out: "csv:/of/the/run.csv")
    again = run("train", "--resume", "--out", "runs/1").output  # the run knows what it was told the first time
    assert "saccade evaluate runs/1 --data csv:/of/the/run.csv" in " ".join(again.split())


def test_train_prints_its_result_as_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from saccade.engine.state import Best
    from saccade.engine.trainer import RunResult

    best = Best(0.5, 3, 0, {"accuracy": 0.5})
    done = RunResult(tmp_path, "time", 4, "main", best, {"loss": float("nan")}, 1.5, None, None)
    monkeypatch.setitem(saccade.__dict__, "train", lambda recipe, **options: done)
    assert json.loads(run("train", "soft-mref", "--out", tmp_path, "--json").stdout) == {
        "out": str(tmp_path), "stopped": "time", "step": 4, "phase": "main", "seconds": 1.5,
        "best": {"value": 0.5, "step": 3, "replica": 0, "metrics": {"accuracy": 0.5}},
        "validation": {"loss": None}, "checkpoint": None, "model": None,
    }  # fmt: skip


def test_tour_shows_its_tables_and_where_the_page_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fake(out: Path, quick: bool, device: str, on_progress) -> SimpleNamespace:
        on_progress("soft-mref", 1, 2)
        assert (out, quick, device) == (tmp_path / "t", True, "auto")
        table = SimpleNamespace(title="scores", columns=("model", "here"), rows=[("soft-mref", "81.2")])
        return SimpleNamespace(report=Path("t/report.html"), tables=[table], seconds=61.4)

    monkeypatch.setitem(saccade.__dict__, "tour", fake)
    result = run("tour", "--quick", "--out", tmp_path / "t")
    assert result.exit_code == 0
    assert "81.2" in result.stdout
    assert "open t/report.html in a browser (61 s)" in result.stdout
