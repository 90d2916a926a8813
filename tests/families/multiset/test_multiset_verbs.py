"""The recipe of HSAL cut down to a few steps: trained in two phases, resumed exactly, scored, asked, toured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

import saccade
from multiset_stubs import short_splits
from saccade.commands.door import app
from saccade.engine.loop import RunResult

TINY = (
    "data.glyphs=pack",
    "model.config={backbone: small, through: stage2, hidden: 8, meta_hidden: 8, location_hidden: 8}",
    "batch_size=8",
    "log_every=2",
    "checkpoint_every=1",
    "phases.0.steps=4",
    "phases.0.validate_every=2",
    "phases.0.schedule.warmup=0",
    "phases.1.steps=4",
    "phases.1.validate_every=2",
    "phases.1.schedule.warmup=0",
)
runner = CliRunner()


@pytest.fixture(autouse=True, scope="module")
def _short():
    with short_splits():
        yield


def train(out: Path, *more: str, recipe: str = "hsal-mnist-multiset") -> RunResult:
    return saccade.train(recipe, out=out, overrides=[*TINY, *more], device="cpu", quiet=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; not to be changed."""
    return train(tmp_path_factory.mktemp("runs") / "hsal").out


@pytest.mark.parametrize("recipe", ["hsal-ce-mnist-set", "hsal-oracle-mnist-multiset", "counts-mnist-multiset"])
def test_controls_train_and_are_scored(recipe: str, tmp_path: Path) -> None:
    config = "model.config={backbone: small, through: stage2, hidden: 8}"
    out = train(tmp_path / "run", config, recipe=recipe).out
    found = saccade.evaluate(out, device="cpu", limit=6)
    assert (found["n"], found["protocol"]) == (6, "unlimited")
    assert {"macro_f1", "exact_match", "macro_f1_by_presence"} <= set(found["metrics"])
    assert {"uniform", "grid_oracle"} <= set(found["baselines"])


def test_look_prints_a_multiset_and_writes_a_strip(run: Path, tmp_path: Path) -> None:
    Image.new("RGB", (80, 60), "grey").save(tmp_path / "a.png")
    command = ["look", str(tmp_path / "a.png"), "--model", str(run), "--device", "cpu"]
    told = runner.invoke(app, [*command, "--json"])
    found = json.loads(told.output)
    assert found["answer"] == "{" + ", ".join(sorted(word for word, _ in found["labels"])) + "}"
    assert found["question"] is None
    table = runner.invoke(app, [*command, "--out", str(tmp_path / "out"), "--filmstrip"])
    assert table.exit_code == 0, table.output
    assert "asked" not in table.output
    assert Image.open(tmp_path / "out" / "a.png").width > 900
