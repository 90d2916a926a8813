"""``saccade average``: a run folder that every reader of runs takes, what its facts say, and what is refused."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from PIL import Image
from tiny_runs import train_tiny
from typer.testing import CliRunner, Result

import saccade
from saccade.cli import app
from saccade.errors import CheckpointError, ConfigError, OutputError
from saccade.models.io.facts import CARD, Score, read_facts
from saccade.models.io.folder import load_model, save_model
from saccade.verbs.looking.run import TITLE
from saccade.verbs.report import report

SCORE = Score("mref", "test", 10, metrics={"accuracy": 0.5})


@pytest.fixture(scope="module")
def pair(tuned: tuple[Path, Path]) -> tuple[Path, Path]:
    """Two runs that were tuned from one; the first has been scored. Not to be changed."""
    model, facts = load_model(tuned[0] / "model")
    save_model(model, tuned[0] / "model", replace(facts, scores=(SCORE,)))
    return tuned


@pytest.fixture(scope="module")
def mean(pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their mean; not to be changed."""
    out = tmp_path_factory.mktemp("means") / "mean"
    saccade.average(pair, out=out, weights=[1, 3])
    return out


def average(*args: object) -> Result:
    return CliRunner().invoke(app, ["average", *map(str, args)])


def test_the_weights_are_the_mean(pair: tuple[Path, Path], mean: Path) -> None:
    slow, fast, found = (load_model(run / "model")[0].state_dict() for run in (*pair, mean))
    assert any(not torch.equal(slow[name], fast[name]) for name in slow)
    for name, tensor in found.items():
        if tensor.is_floating_point():
            expected = (slow[name].double() + 3 * fast[name].double()) / 4
            torch.testing.assert_close(tensor.double(), expected, rtol=1e-3, atol=1e-7, msg=name)  # kept as float16
        else:
            assert torch.equal(tensor, slow[name])


def test_the_facts_say_of_which_runs(pair: tuple[Path, Path], mean: Path) -> None:
    facts, (slow, fast) = read_facts(mean / "model"), [read_facts(run / "model") for run in pair]
    assert [(part.name, part.share) for part in facts.mean_of] == [("slow", 0.25), ("fast", 0.75)]
    assert [part.sha256 for part in facts.mean_of] == [slow.sha256, fast.sha256]
    assert facts.mean_of[0].settings == {}
    assert facts.mean_of[1].settings == {"phases.0.optimizer.lr": 1e-3, "seed": 1}
    assert (facts.recipe, facts.dtype, facts.answers) == (slow.recipe, slow.dtype, slow.answers)
    assert slow.scores == (SCORE,)
    assert facts.scores == ()
    assert "metrics" not in facts.training
    assert facts.training["step"] == 4
    assert facts.training["machine"] == slow.training["machine"]


def test_runs_of_different_ages_are_compared_as_recipes_of_today(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """A run of schema 1 differs from the same run of today in nothing."""
    old = shutil.copytree(pair[0], tmp_path / "slow")
    path = old / "model" / "config.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    facts["recipe"].update(schema_version=1, task="attribute")
    facts["recipe"].pop("family")
    for phase in facts["recipe"]["phases"]:
        phase["loss"] = phase["loss"]["name"]
        del phase["data"], phase["features"]
    path.write_text(json.dumps(facts), encoding="utf-8")
    found = saccade.average([old, pair[1]], out=tmp_path / "mean")
    assert found.mean_of[1].settings == {"phases.0.optimizer.lr": 1e-3, "seed": 1}
    assert found.recipe == read_facts(pair[0] / "model").recipe


def test_the_card_says_it(pair: tuple[Path, Path], mean: Path) -> None:
    card = (mean / "model" / CARD).read_text(encoding="utf-8")
    fast = read_facts(pair[1] / "model").sha256
    assert "- the mean of the weights of 2 runs; the recipe below is that of the first\n  - 0.25 of `slow`" in card
    assert f"  - 0.75 of `fast`, SHA-256 `{fast}`, with phases.0.optimizer.lr `0.001`, seed `1`\n" in card
    assert "Not scored yet" in card
    assert "the mean of" not in (pair[0] / "model" / CARD).read_text(encoding="utf-8")


def test_the_folder_is_a_run_folder(pair: tuple[Path, Path], mean: Path) -> None:
    assert {path.name for path in mean.iterdir()} == {"config.yaml", "metrics.jsonl", "log.txt", "model"}
    config, first = (yaml.safe_load((run / "config.yaml").read_text()) for run in (mean, pair[0]))
    assert config["recipe"] == {**first["recipe"], "title": f"mean of 2 runs: {first['recipe']['title']}"}
    assert [part["name"] for part in config["run"]["mean_of"]] == ["slow", "fast"]
    lasts = [json.loads((run / "metrics.jsonl").read_text().splitlines()[-1]) for run in pair]
    (row,) = map(json.loads, (mean / "metrics.jsonl").read_text().splitlines())
    assert (row["step"], row["values"]) == (4, {})
    assert row["seconds"] == pytest.approx(sum(last["seconds"] for last in lasts), abs=1e-3)
    assert "0.75 of " in (mean / "log.txt").read_text()


@pytest.mark.parametrize("stored", ["float32", "int8"])
def test_the_stored_type_is_chosen(pair: tuple[Path, Path], tmp_path: Path, stored: str) -> None:
    facts = saccade.average(pair, out=tmp_path / "mean", stored=stored)  # type: ignore[arg-type]
    assert facts == read_facts(tmp_path / "mean" / "model")
    assert (facts.dtype, read_facts(pair[0] / "model").dtype) == (stored, "float16")
    assert [part.share for part in facts.mean_of] == [0.5, 0.5]


def test_runs_may_be_stored_in_different_types_and_count_twice(pair: tuple[Path, Path], tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    saccade.average([pair[1], pair[1]], out=whole, stored="float32")
    facts = saccade.average([pair[0], whole, pair[1]], out=tmp_path / "mean")
    twice = saccade.average(pair, out=tmp_path / "twice", weights=[1, 2])
    assert facts.dtype == "float16"
    assert facts.sha256 == twice.sha256


def test_it_is_scored_asked_and_reported(mean: Path, tmp_path: Path) -> None:
    scored = saccade.evaluate(mean, limit=18, sweeps=1, device="cpu")
    assert 0 <= scored["metrics"]["accuracy"] <= 1
    Image.new("RGB", (40, 40), "red").save(tmp_path / "a.png")
    assert saccade.load(mean, "cpu").look(tmp_path / "a.png", ask=3).answer in read_facts(mean / "model").answers
    page = report([mean], looks=1, device="cpu")
    assert page.title.startswith("mean of 2 runs: ")
    assert next(section for section in page.sections if section.title == TITLE).blocks
    assert "run.mean_of.1.sha256" in page.html()
    assert [section.title for section in page.sections][:2] == ["The averaged runs", TITLE], "nothing was measured"


def test_training_begins_with_it_but_does_not_go_on_with_it(mean: Path, tmp_path: Path) -> None:
    still = ("phases.0.optimizer.lr=1e-12", "phases.0.steps=1", "phases.0.validate_every=1")
    began = train_tiny(tmp_path / "r", *still, start=mean)
    old, new = (load_model(folder / "model")[0] for folder in (mean, began.out))
    for before, after in zip(old.parameters(), new.parameters(), strict=True):
        torch.testing.assert_close(before, after, rtol=0, atol=1e-6)
    with pytest.raises(CheckpointError, match="checkpoint"):
        saccade.train(out=mean, resume=True, device="cpu", quiet=True)


def test_means_can_be_averaged_again(pair: tuple[Path, Path], mean: Path, tmp_path: Path) -> None:
    """A quarter and three quarters, and then as much again of the first: five eighths and three eighths."""
    facts = saccade.average([mean, pair[0]], out=tmp_path / "again", stored="float32")
    assert [part.name for part in facts.mean_of] == ["mean", "slow"]
    slow, fast, found = (load_model(run / "model")[0] for run in (*pair, tmp_path / "again"))
    for one, other, both in zip(slow.parameters(), fast.parameters(), found.parameters(), strict=True):
        torch.testing.assert_close(both, 5 / 8 * one + 3 / 8 * other, rtol=1e-3, atol=1e-7)


def test_the_command_averages_and_says_what_is_next(pair: tuple[Path, Path], mean: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    result = average(*pair, "--out", out, "--weights", "0.5, 1.5")
    assert result.exit_code == 0, result.output
    assert f"saccade evaluate {out}" in " ".join(result.stderr.split())
    assert read_facts(out / "model").sha256 == read_facts(mean / "model").sha256  # 1 to 3, too
    quiet = average(*pair, "--out", tmp_path / "q", "--stored", "int8", "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")
    assert read_facts(tmp_path / "q" / "model").dtype == "int8"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["slow", "fast", "--weights", "1"], "weights: 1 for 2 runs; give one for each run"),
        (["slow", "fast", "--weights", "1,2,3"], "weights: 3 for 2 runs"),
        (["slow", "fast", "--weights", "1,nan"], "weights: finite numbers above 0, found 1.0, nan"),
        (["slow", "fast", "--weights", "1,inf"], "weights: finite numbers above 0"),
        (["slow", "fast", "--weights", "2,-1"], "weights: finite numbers above 0, found 2.0, -1.0"),
        (["slow", "fast", "--weights", "0,0"], "weights: finite numbers above 0"),
        (["slow", "fast", "--weights", "1e308,1e308"], "weights: finite numbers above 0"),
        (["slow", "fast", "--weights", "1;2"], "--weights: expected numbers with commas between"),
        (["slow", "fast", "--stored", "flaot16"], "stored: no type 'flaot16': did you mean 'float16'"),
        (["slow"], "averaging needs two runs or more, found slow"),
        (["slow", "gone"], "gone: not a run folder (there is no such folder)"),
        (["slow", "slow/model"], "slow/model: not a run folder (it has no config.yaml)"),
        (["slow", "soft-mref"], "soft-mref: not a run folder"),
        (["slow", "young"], "young: a run that has not saved a model yet; continue with"),
        (["slow", "cut"], "cut/model/model.safetensors: damaged"),
        (["slow", "uncounted"], "metrics.jsonl: cannot be read"),
        (["slow", "wide"], "model.hidden is 5 in wide and 4 in slow: such models cannot be averaged"),
    ],
)
def test_a_mistake_is_one_line_exit_code_2_and_nothing_written(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for run in pair:
        shutil.copytree(run, tmp_path / run.name, ignore=shutil.ignore_patterns("checkpoints"))
    if args[1:2] == ["young"]:
        shutil.copytree(pair[1], "young", ignore=shutil.ignore_patterns("model"))
    if args[1:2] == ["uncounted"]:
        shutil.copytree(pair[1], "uncounted", ignore=shutil.ignore_patterns("metrics.jsonl"))
    if args[1:2] == ["cut"]:
        shutil.copytree(pair[1], "cut")
        Path("cut/model/model.safetensors").write_bytes(b"cut")
    if args[1:2] == ["wide"]:
        train_tiny(tmp_path / "wide", "phases.0.steps=1", "phases.0.validate_every=1", "model.config.hidden=5")
    before = set(tmp_path.iterdir())
    result = average(*args, "--out", "mean")
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert result.stderr.count("error:") == 1
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"answers": ("crimson", "green", "blue", "yellow", "white")}, "answers.0 is 'crimson' in b and "),
        ({"queries": tuple("abcdefghij")}, "queries.0 is 'a' in b and '0' in a"),
        ({"preprocessing": {"size": (90, 100), "fill": 0.0}}, "preprocessing.size.0 is 90 in b and 100 in a"),
        ({"preprocessing": {"size": (100, 100), "fill": 0.5}}, "preprocessing.fill is 0.5 in b and 0.0 in a"),
        ({"sentences": True}, "sentences is True in b and False in a"),
        ({"model.dropout": 0.25}, "model.dropout is 0.25 in b and 0.5 in a"),
    ],
)
def test_what_differs_is_named(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for run, name in zip(pair, "ab"):
        shutil.copytree(run, name, ignore=shutil.ignore_patterns("checkpoints"))
    config = json.loads(Path("b/model/config.json").read_text())
    for key, value in change.items():
        group, _, setting = key.rpartition(".")
        (config[group] if group else config)[setting] = value
    if config["sentences"]:
        Path("b/model/vocab.json").write_text(json.dumps({"schema_version": 1, "words": config.pop("answers")}))
    Path("b/model/config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="such models cannot be averaged") as refused:
        saccade.average(["a", "b"], out="mean")
    assert words in str(refused.value)
    assert not Path("mean").exists()


def test_a_place_that_is_taken_is_left_alone(pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name, words in (("full", "is not empty"), ("file", "a file is in the way")):
        with pytest.raises(OutputError, match=words):
            saccade.average(pair, out=tmp_path / name)
    with pytest.raises(OutputError, match="is not empty"):
        saccade.average(pair, out=pair[0])
    assert [path.read_text() for path in (tmp_path / "full" / "note", tmp_path / "file")] == ["mine", "mine"]
    (tmp_path / "empty").mkdir()
    saccade.average(pair, out=tmp_path / "empty")
    assert (tmp_path / "empty" / "model").is_dir()


def test_a_failure_on_the_way_leaves_nothing(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OutputError("the disk is full")

    monkeypatch.setattr("saccade.verbs.mean_run.save_model", full)
    with pytest.raises(OutputError, match="the disk is full"):
        saccade.average(pair, out=tmp_path / "deep" / "mean")
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.parametrize("runs", ["slow", [], Path("slow")])
def test_python_takes_a_list_of_runs(runs: object, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="averaging needs two runs or more"):
        saccade.average(runs, out=tmp_path / "mean")  # type: ignore[arg-type]


def test_shares_are_normalised(pair: tuple[Path, Path], tmp_path: Path) -> None:
    facts = saccade.average([*pair, pair[0]], out=tmp_path / "mean", weights=[0.5, 0.8, 0.3])
    assert [part.share for part in facts.mean_of] == pytest.approx([0.5 / 1.6, 0.5, 0.3 / 1.6])
    assert math.fsum(part.share for part in facts.mean_of) == pytest.approx(1)
