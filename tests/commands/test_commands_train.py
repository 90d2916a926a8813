"""Training by name and as it is typed: the run folder, resuming, the clock, changed data, seeds in turn, refusals."""

import csv
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import saccade
from saccade.commands import train as verb
from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.recipe import load_recipe
from saccade.errors import CheckpointError, ConfigError, DataError, OutputError
from saccade.families.question.task import QuestionTask
from saccade.models.facts import read_facts
from saccade.models.folder import load_model
from small_tables import write_table
from tiny_runs import FRESH, STEPS, TINY, train_tiny
from typed import typed


def stop_before(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """A SIGTERM arrives while batch number ``batch`` is made: the step that uses it is the last."""
    original = QuestionTask.train_batches

    def interrupted(self: QuestionTask, start: int, **options: int) -> Iterator[object]:
        for number, made in enumerate(original(self, start, **options), start):
            if number == batch:
                signal.raise_signal(signal.SIGTERM)
            yield made

    monkeypatch.setattr(QuestionTask, "train_batches", interrupted)


def assert_same_run(one: Path, other: Path) -> None:
    left, right = (CheckpointStore(out / "checkpoints").load_newest()[0] for out in (one, other))
    assert left.tensors.keys() == right.tensors.keys()
    for name, tensor in left.tensors.items():
        assert torch.equal(tensor, right.tensors[name]), name
    assert read_facts(one / "model").sha256 == read_facts(other / "model").sha256
    assert metrics(one, "validation") == metrics(other, "validation")


def metrics(out: Path, kind: str) -> list[tuple[int, dict[str, float]]]:
    entries = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [(entry["step"], entry["values"]) for entry in entries if entry["kind"] == kind]


def test_a_run_folder_holds_what_the_contract_says(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {
        "config.yaml", "data.json", "metrics.jsonl", "log.txt", "checkpoints", "model",
    }  # fmt: skip
    config = yaml.safe_load((run / "config.yaml").read_text())
    recipe = config["recipe"]
    assert (recipe["name"], recipe["protocol"], recipe["batch_size"]) == ("soft-mref", "unlimited", 8)
    assert recipe["model"]["config"] == {"dropout": 0.5, "channels": 4, "hidden": 4}
    assert config["run"]["device"] == "cpu"
    assert [step for step, _ in metrics(run, "validation")] == [3, 6]
    assert all(set(values) == {"loss", "accuracy", "gradient_norm", "lr"} for _, values in metrics(run, "train"))
    assert all(0 <= values["accuracy"] <= 1 for _, values in metrics(run, "validation"))


def test_a_run_begins_with_the_weights_of_another(run: Path, tmp_path: Path) -> None:
    """With next to no rate the model stays what it began with, whatever its seed; norms alone count on."""
    still = ("phases.0.optimizer.lr=1e-12", "phases.0.steps=1", "phases.0.validate_every=1")
    began = train_tiny(tmp_path / "r", *still, seed=5, start=run)
    old, new = (load_model(folder / "model")[0] for folder in (run, began.out))
    for (name, before), after in zip(old.named_parameters(), new.parameters(), strict=True):
        torch.testing.assert_close(before, after, rtol=0, atol=1e-6, msg=name)
    assert read_facts(began.out / "model").recipe["start"] == str(run)


def test_what_does_not_fit_is_said(run: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="has nothing for attention.scorer.from_features.weight"):
        train_tiny(tmp_path / "r", "phases.0.steps=1", "model.config.hidden=3", start=run)
    with pytest.raises(CheckpointError, match="no model 'soft-mreff' in the zoo"):
        train_tiny(tmp_path / "none", start="soft-mreff")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("protocol", "stop"), [("unlimited", 2), ("authors", 5)])
def test_stop_and_resume_is_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, stop: int
) -> None:
    """Fresh scenes and a finite set in epochs of five steps (5 is a border), with dropout and a cosine schedule."""
    more = ["phases.0.epochs=2"] if protocol == "authors" else []
    whole = train_tiny(tmp_path / "whole", *more, protocol=protocol)
    with monkeypatch.context() as patch:
        stop_before(patch, stop - 1)
        first = train_tiny(tmp_path / "parts", *more, protocol=protocol)
    assert (first.stopped, first.step) == ("signal", stop)
    torch.rand(5)  # another process would not have the same random state either
    second = train_tiny(tmp_path / "parts", *more, protocol=protocol, resume=True)
    assert (second.stopped, second.step) == (whole.stopped, whole.step) == ("finished", 10 if more else STEPS)
    assert second.validation == whole.validation
    assert_same_run(whole.out, second.out)


def test_the_clock_stops_a_run_that_can_go_on(run: Path, tmp_path: Path) -> None:
    first = train_tiny(tmp_path / "r", max_minutes=1e-9)
    assert (first.stopped, first.step) == ("time", 1)
    with pytest.raises(CheckpointError, match=r"--resume"):
        saccade.evaluate(tmp_path / "r")
    assert saccade.train(out=tmp_path / "r", resume=True, device="cpu", quiet=True).stopped == "finished"
    assert_same_run(run, tmp_path / "r")  # the run knew its own recipe
    with pytest.raises(ConfigError, match="keeps its recipe"):
        saccade.train(out=tmp_path / "r", resume=True, seed=3)
    with pytest.raises(ConfigError, match="no recipe: name one"):
        saccade.train(out=tmp_path / "new")


QUESTIONS = (
    "data.size=[48,48]", "batch_size=16", "model.config.hidden=4", "model.config.channels=4", "model.config.depth=2",
    "phases.0.epochs=1", "phases.0.schedule.warmup=0",
)  # fmt: skip
Rows = list[dict[str, str]]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))


def begun(out: Path, recipe: str, table: Path, overrides: tuple[str, ...]) -> Path:
    """A run that the clock stopped after its first step."""
    options = {"device": "cpu", "quiet": True, "max_minutes": 1e-9, "overrides": overrides}
    assert saccade.train(recipe, data=f"csv:{table}", out=out, **options).step == 1
    return out


def go_on(out: Path, **options: bool) -> str:
    return saccade.train(out=out, resume=True, device="cpu", quiet=True, **options).stopped


def rewrite(table: Path, change: Callable[[Rows], Rows]) -> None:
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(change(rows))


def repaint(picture: Path) -> None:
    """Another picture in its place, of as many bytes, at the same time."""
    size, times = picture.stat().st_size, (picture.stat().st_atime_ns, picture.stat().st_mtime_ns)
    pixels = np.array(Image.open(picture))
    Image.fromarray(255 - pixels).save(picture)
    content = picture.read_bytes()
    assert len(content) <= size, "choose a picture that is packed as well"
    picture.write_bytes(content + b"\0" * (size - len(content)))
    os.utime(picture, ns=times)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "files")


def test_rotated_labels_are_refused(tmp_path: Path, table: Path) -> None:
    out = begun(tmp_path / "r", "attributes", table, QUESTIONS)
    rewrite(table, lambda rows: [{**row, "label": rows[place - 1]["label"]} for place, row in enumerate(rows)])
    with pytest.raises(DataError, match="rows"):
        go_on(out)


def test_what_is_not_learned_from_may_change(tmp_path: Path, table: Path) -> None:
    """Test rows, other columns, times of files, and where the folder of the table lies."""
    out = begun(tmp_path / "r", "attributes", table, QUESTIONS)
    rewrite(table, lambda rows: [{**row, "box": ""} for row in rows if row["image"] != "53.png"])
    os.utime(table.parent / "00.png", ns=(5, 5))
    (tmp_path / "moved").mkdir()
    moved = table.parent.rename(tmp_path / "moved" / "files") / "table.csv"
    settings = out / "config.yaml"
    settings.write_text(settings.read_text(encoding="utf-8").replace(str(table), str(moved)))
    assert go_on(out) == "finished"


def test_a_picture_that_was_replaced_by_another_of_its_size_is_refused(tmp_path: Path, table: Path) -> None:
    out = begun(tmp_path / "r", "attributes", table, QUESTIONS)
    repaint(table.parent / "07.png")
    with pytest.raises(DataError, match="pictures"):
        go_on(out)


run = partial(typed, "train")


def test_the_usual_numbers_have_names() -> None:
    recipe = verb.resolve("attributes", epochs=3, batch_size=8, lr=1e-4, overrides=["seed=1"])
    phase = recipe.phases[0]
    assert (phase.epochs, phase.steps, phase.validate_every, phase.optimizer.lr) == (3, None, 1, 1e-4)
    assert (recipe.batch_size, recipe.seed) == (8, 1)
    phase = verb.resolve("attributes", steps=5).phases[0]
    assert (phase.epochs, phase.steps, phase.validate_every) == (None, 5, None)  # one epoch is not one step
    last = load_recipe("hsal-mnist-multiset").phases[-1].name
    phases = verb.resolve("hsal-mnist-multiset", phases=[last], steps=5).phases
    assert [(phase.name, phase.steps) for phase in phases] == [(last, 5)]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["attributes", "--epochs", "3", "--steps", "5"], "epochs"),
        (["hsal-mnist-multiset", "--steps", "5"], "phases"),
        (["soft-mref", "--phase", "mian"], "main"),
        (["hard-mreff"], "'hard-mref'"),
        (["soft-mref", "--set", "family=qestion"], "'question'"),
        (["soft-mref", "--set", "phases.0.loss=hinge", "--set", "data.glyphs=pack"], "'hinge'"),
        (["soft-mref", "--backbone", "resnet"], "'resnet50'"),
        (["soft-mref", "--seed", "99999999999"], "seed"),
        (["soft-mref", "--device", "gpu", "--set", "data.glyphs=pack"], "'gpu'"),
        (["--resume", "--lr", "0.1"], "lr"),
        (["soft-mref", "--accept-changed-data"], "--resume"),
        ([], "recipe"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, words: list[str], named: str) -> None:
    result = run(*words, "--out", tmp_path / "run", "--quiet")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert named in result.stderr
    assert run("soft-mref").exit_code == 2  # no --out


WORDS = [word for override in (*TINY, *FRESH) for word in ("--set", override)]


def test_runs_go_on_where_they_stopped(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is finished, the second begun, the third not begun."""
    shutil.copytree(run, tmp_path / "all" / "seed-0")
    with pytest.raises(OutputError, match="seed-0"):
        train_tiny(tmp_path / "all", seeds=3)
    assert not (tmp_path / "all" / "seed-1").exists()
    model = tmp_path / "all" / "seed-0" / "model"
    kept = {path: path.read_bytes() for path in model.iterdir()}
    with monkeypatch.context() as patch:
        stop_before(patch, 3)
        stopped = train_tiny(tmp_path / "all", seeds=3, resume=True)
    assert [(result.out.name, result.stopped) for result in stopped] == [("seed-0", "finished"), ("seed-1", "signal")]
    results = train_tiny(tmp_path / "all", seeds=3, resume=True)
    assert [result.stopped for result in results] == ["finished"] * 3
    assert {path: path.read_bytes() for path in model.iterdir()} == kept
    for seed, result in enumerate(results):
        assert_same_run(result.out, train_tiny(tmp_path / "alone" / str(seed), seed=seed).out)


def test_no_seed_begins_when_the_time_is_over(tmp_path: Path) -> None:
    words = ["soft-mref", "--seeds", "3", "--out", tmp_path / "all", "--device", "cpu", "-q", *WORDS]
    short = ["--set", "phases.0.steps=1", "--set", "phases.0.validate_every=1"]
    done = run(*words, *short, "--max-minutes", "1e-9")  # the first takes its one step, and so is finished
    assert done.exit_code == 0, done.output
    assert [path.name for path in (tmp_path / "all").iterdir()] == ["seed-0"]
    again = json.loads(run(*words, *short, "--resume", "--json").stdout)
    assert [(Path(one["out"]).name, one["stopped"]) for one in again] == [
        (f"seed-{number}", "finished") for number in range(3)
    ]


def test_the_end_has_the_spread_of_each_score(tmp_path: Path) -> None:
    words = ["train", "soft-mref", "--seeds", "2", "--out", str(tmp_path / "all"), "--device", "cpu", "-q", *WORDS]
    done = typed(*words)
    assert done.exit_code == 0, done.output
    assert "accuracy" in done.stdout
    assert " ± " in done.stdout
    told = json.loads(typed(*words, "--resume", "--json").stdout)
    assert [Path(one["out"]).name for one in told] == ["seed-0", "seed-1"]
    assert all(one["stopped"] == "finished" for one in told)
