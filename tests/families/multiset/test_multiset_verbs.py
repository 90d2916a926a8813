"""The recipe of HSAL cut down to a few steps: trained in two phases, resumed exactly, scored, asked, toured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from typer.testing import CliRunner

import saccade
from multiset_stubs import short_splits
from saccade.commands.door import app
from saccade.commands.report import run_looks
from saccade.engine.loop import RunResult
from saccade.engine.stop import StopRequest
from saccade.families.multiset.data import MultisetData, MultisetDataConfig
from saccade.families.multiset.splits import examples
from saccade.models.io.facts import read_facts

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


def rows(run: Path, kind: str) -> list[dict]:
    found = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [row for row in found if row["kind"] == kind]


def test_curves_of_the_figures_are_logged(run: Path) -> None:
    """Figure 5 is the saliency at glimpses over training, Figure 6 the F1."""
    validations = rows(run, "validation")
    assert [row["phase"] for row in validations] == ["activation"] * 2 + ["controllers"] * 2
    assert all({"macro_f1", "exact_match", "single_accuracy"} <= set(row["values"]) for row in validations)
    trained = {row["phase"]: row["values"] for row in rows(run, "train")}
    assert {"loss", "single_accuracy"} <= set(trained["activation"])
    assert {"loss", "class_reward", "location_reward", "attn_saliency", "entropy"} <= set(trained["controllers"])


def test_the_backbone_rests_in_the_second_phase(run: Path) -> None:
    folders = {path.name: path for path in (run / "checkpoints").iterdir()}
    states = [load_file(next(folders[f"step-0000000{step}"].glob("*.safetensors"))) for step in (6, 7)]
    changed = {
        name.split("/")[1].split(".")[0]
        for name in states[0]
        if name.startswith("model/") and not torch.equal(states[0][name], states[1][name])
    }
    assert changed == {"meta", "controller"}


@pytest.mark.parametrize("stop_after", [2, 4, 5])  # 4 is the border between the phases
def test_resuming_is_exact_across_phases(run: Path, tmp_path: Path, stop_after: int, monkeypatch) -> None:
    steps = iter(range(1, 100))
    monkeypatch.setattr(StopRequest, "reason", lambda self: "time" if next(steps) >= stop_after else None)
    stopped = train(tmp_path / "parts")
    assert (stopped.stopped, stopped.step) == ("time", stop_after)
    monkeypatch.undo()
    with short_splits():
        again = saccade.train(out=tmp_path / "parts", resume=True, device="cpu", quiet=True)
    assert (again.stopped, again.step) == ("finished", 8)
    one, other = (load_file(folder / "model" / "model.safetensors") for folder in (run, tmp_path / "parts"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert [row["values"] for row in rows(run, "validation")] == [
        row["values"] for row in rows(tmp_path / "parts", "validation")
    ]


@pytest.mark.parametrize("recipe", ["hsal-ce-mnist-set", "hsal-oracle-mnist-multiset", "counts-mnist-multiset"])
def test_controls_train_and_are_scored(recipe: str, tmp_path: Path) -> None:
    config = "model.config={backbone: small, through: stage2, hidden: 8}"
    out = train(tmp_path / "run", config, recipe=recipe).out
    found = saccade.evaluate(out, device="cpu", limit=6)
    assert (found["n"], found["protocol"]) == (6, "unlimited")
    assert {"macro_f1", "exact_match", "macro_f1_by_presence"} <= set(found["metrics"])
    assert {"uniform", "grid_oracle"} <= set(found["baselines"])


def test_evaluate_prints_one_object_of_fractions(run: Path) -> None:
    result = runner.invoke(app, ["evaluate", str(run), "--limit", "6", "--json", "--device", "cpu"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert {"model", "data", "split", "protocol", "n", "seed", "metrics", "attention", "baselines", "seconds"} <= set(
        found
    )
    for group in (found["metrics"], found["attention"], *found["baselines"].values()):
        for name, value in group.items():
            assert name.endswith("_raw") or isinstance(value, dict) or 0 <= value <= 1, name
    shown = runner.invoke(app, ["evaluate", str(run), "--limit", "6", "--device", "cpu", "--quiet"])
    assert "macro_f1" in shown.output
    assert "exact_match_by_count" in shown.output


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
    made = runner.invoke(app, ["report", str(tmp_path / "out" / "a.json"), "--out", str(tmp_path / "page.html")])
    assert made.exit_code == 0, made.output
    assert found["answer"] in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_questions_are_refused_in_one_line(run: Path, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    command = ["look", str(tmp_path / "a.png"), "--device", "cpu"]
    wrong = runner.invoke(app, [*command, "--model", str(run), "--ask", "3"])
    missing = runner.invoke(app, [*command, "--model", "soft-mref"])
    assert (wrong.exit_code, missing.exit_code) == (2, 2)
    assert "takes no question" in wrong.output
    assert "needs a question" in missing.output


def test_the_report_shows_what_was_read(run: Path) -> None:
    section = run_looks(run, 2, "cpu")
    assert section is not None
    (gallery,) = section.blocks
    val = examples(MultisetData(MultisetDataConfig(glyphs="pack"), "val"), 2)
    assert [picture.caption.partition("true: ")[2] for picture in gallery.pictures] == [each.truth for each in val]
    assert all(len(each.masks) == each.truth.count(",") + 1 for each in val)


def test_facts_have_no_queries_and_the_card_asks_nothing(run: Path) -> None:
    assert read_facts(run / "model").queries == ()
    card = (run / "model" / "card.md").read_text(encoding="utf-8")
    assert "asks: nothing in particular" in card
    assert '.look("scene.png")' in card


def test_empty_scenes_are_in_training_alone() -> None:
    config = MultisetDataConfig(glyphs="pack", empty=0.5)
    train_data, val = (MultisetData(config, split) for split in ("train", "val"))
    assert 4 <= int((train_data.take(torch.arange(20)).labels >= 0).any(1).sum()) <= 16
    assert bool((val.take(torch.arange(12)).labels >= 0).any(1).all())
