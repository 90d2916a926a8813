"""``saccade train`` as it is typed: what reaches the function, what is printed, what is refused; and seeds in turn."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from test_commands_train import assert_same_run, stop_before

from labelled_files import class_folders
from saccade.commands import train as verb
from saccade.engine.recipe import load_recipe
from saccade.errors import OutputError
from tiny_runs import FRESH, TINY, train_tiny
from typed import error_line, typed

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


def test_one_class_is_refused_by_its_name(tmp_path: Path) -> None:
    class_folders(tmp_path / "photos")
    for other in ("green", "blue"):
        shutil.rmtree(tmp_path / "photos" / other)
    for recipe in ("attributes-head", "ran-56-photos"):
        line = error_line(run(recipe, "--data", tmp_path / "photos", "--out", tmp_path / "run"))
        assert "'red'" in line
        assert "two" in line
    assert not (tmp_path / "run").exists()


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
