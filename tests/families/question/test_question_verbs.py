"""One's own pictures from table to overlay: train, resume, evaluate, look; by Python and by the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from typer.testing import CliRunner, Result

import saccade
from question_tables import COLOURS, SPLITS, write_table
from saccade.commands.door import app
from saccade.engine.loop import RunResult
from saccade.errors import ConfigError, DataError

TINY = (
    "data.size=[48,48]", "batch_size=16", "model.config.hidden=4", "phases.0.epochs=2",
    "phases.0.schedule.warmup=0",
)  # fmt: skip
SMALL = ("model.config.channels=4", "model.config.depth=2")
N = 2 * len(SPLITS["test"])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("pictures"), evidence="point")


def train(out: Path, data: str, *more: str, recipe: str | None = "attributes", **options: Any) -> RunResult:
    return saccade.train(recipe, data=data, out=out, overrides=[*TINY, *more], device="cpu", quiet=True, **options)


def scored(run: Path, data: str | None, **options: Any) -> dict:
    return saccade.evaluate(run, data=data, **{"device": "cpu", "sweeps": 1, **options})


def verb(*args: object) -> str:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two epochs; not to be changed."""
    return train(tmp_path_factory.mktemp("runs") / "small", f"csv:{table}", *SMALL).out


def test_maps_are_taught_where_to_look_and_everything_says_so(table: Path, run: Path, tmp_path: Path) -> None:
    """The same thirty epochs with the evidence as an extra loss: more of the attention lies on it."""
    more = (*SMALL, "phases.0.epochs=30", "phases.0.optimizer.lr=0.02")
    words = "phases.0.loss={name: default, evidence_weight: 3.0}"
    taught = train(tmp_path / "taught", f"csv:{table}", *more, words).out
    plain = train(tmp_path / "plain", f"csv:{table}", *more).out
    found, other = (scored(each, f"csv:{table}") for each in (taught, plain))
    score = "true_positive_strength"
    assert found["attention"][score] > 1.5 * other["attention"][score]
    assert found["maps_supervised"] == "by evidence, with weight 3"
    assert "maps_supervised" not in other
    assert "evidence, with weight 3" in (taught / "model" / "card.md").read_text("utf-8")
    seen = saccade.load(taught, "cpu").look(table.parent / "00.png", ask="upper")
    assert "the map was taught where to look by evidence, with weight 3" in seen.notes
    rows = [json.loads(line) for line in (taught / "metrics.jsonl").read_text("utf-8").splitlines()]
    losses = [row["values"]["evidence_loss"] for row in rows if "evidence_loss" in row["values"]]
    assert losses[-1] < losses[0]


def test_a_model_learns_a_table(table: Path, tmp_path: Path) -> None:
    """Enough epochs for colours on grey; the answer then depends on the question, and the look goes where it is."""
    more = ("model.config.channels=8", "model.config.depth=2", "model.config.dropout=0.0", "model.config.hidden=16")
    steps = ("phases.0.epochs=40", "phases.0.validate_every=10", "phases.0.optimizer.lr=5e-3")
    result = train(tmp_path / "run", f"csv:{table}", *more, *steps, "data.augment.area=[1.0,1.0]")
    assert result.best is not None
    assert result.best.value == result.best.metrics["accuracy"]  # the recipe says score
    assert "score" not in result.best.metrics  # which is no number of its own
    found = scored(tmp_path / "run", f"csv:{table}", sweeps=6)
    assert found["metrics"]["accuracy"] > 0.9
    assert found["metrics"]["swapped_query"] < 0.2
    for score in ("pointing_at", "attention_near", "true_positive_strength"):
        assert found["attention"][score] > 3 * found["baselines"]["uniform"][score], score
    assert found["attention"]["distance"] < found["baselines"]["box_centre_exact"]["distance"]
    assert found["attention"]["insertion"] > found["baselines"]["uniform"]["insertion"]


def test_a_run_goes_on_exactly_where_it_stopped_from_any_folder(
    table: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun beside the table by a relative path, cut short after one epoch, resumed elsewhere."""
    monkeypatch.chdir(table.parent)
    train(tmp_path / "cut", "csv:table.csv", *SMALL, "checkpoint_every=4")
    monkeypatch.chdir(tmp_path)
    for late in (tmp_path / "cut" / "checkpoints").glob("step-*"):
        if int(late.name.removeprefix("step-")) > 4:
            shutil.rmtree(late)
    resumed = saccade.train(out=tmp_path / "cut", resume=True, device="cpu", quiet=True)
    assert resumed.stopped == "finished"
    last = [path / "checkpoints" / "step-00000008" for path in (run, tmp_path / "cut")]
    one, other = (load_file(next(step.glob("*.safetensors"))) for step in last)
    assert one.keys() == other.keys()
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_by_command_line(table: Path, tmp_path: Path) -> None:
    overrides = [part for each in (*TINY, *SMALL) for part in ("--set", each)]
    out = tmp_path / "run"
    command = ("train", "attributes", "--data", f"csv:{table}", "--out", out, "--device", "cpu", *overrides)
    result = CliRunner().invoke(app, [str(part) for part in command])
    assert result.exit_code == 0, result.output
    assert re.search(rf"saccade evaluate \S+ --data csv:{re.escape(str(table))}", result.stderr.replace("\n", " "))
    found = json.loads(verb("evaluate", out, "--data", f"csv:{table}", "--split", "test", "--json", "--device", "cpu"))
    assert found["n"] == N
    shown = verb("evaluate", out, "--data", f"csv:{table}", "--limit", 8, "--device", "cpu", "--quiet")
    for words in ("accuracy", "training prior", "part prior", "n 8"):
        assert words in shown, words
    assert "None" not in shown
    seen = json.loads(
        verb("look", table.parent / "00.png", "--model", out, "--ask", "Upper", "--json", "--device", "cpu")
    )
    assert seen["answer"] in COLOURS
    verb(
        "look",
        table.parent / "0*.png",
        "--model",
        out,
        "--ask",
        "lower",
        "--out",
        tmp_path / "looks",
        "--device",
        "cpu",
    )
    assert {file.suffix for file in (tmp_path / "looks").iterdir()} == {".png", ".json", ".safetensors", ".csv"}


def test_a_model_of_pictures_has_to_be_told_where_they_are(run: Path, table: Path) -> None:
    with pytest.raises(ConfigError, match="does not store where its data is; give `data=csv:PATH`"):
        scored(run, None)
    with pytest.raises(ConfigError, match=r"glyphs: .* has no choice of these"):
        scored(run, f"csv:{table}", glyphs="pack")
    with pytest.raises(ConfigError, match="split"):
        scored(run, f"csv:{table}", split="tset")


def test_answers_that_the_model_never_learnt_are_counted(run: Path, table: Path, tmp_path: Path) -> None:
    """A table of new pictures, some of them of a colour that was never seen."""
    lines = table.read_text().splitlines()
    head, rows = lines[0], [line for line in lines[1:] if ",test," in line]
    other = table.with_name("other.csv")
    other.write_text(
        "\n".join([head, *(line.replace(",blue,", ",violet,") for line in rows), "gone.png,upper,red,test,,"])
    )
    with pytest.warns(UserWarning, match="unknown to the model"), pytest.warns(UserWarning, match="no such picture"):
        found = scored(run, f"csv:{other}")
    blue = sum(",blue," in line for line in rows)
    assert found["n"] == N - blue
    assert found["counts"]["skipped_rows"] == blue + 1
    assert "training_prior" not in found["baselines"]  # no training rows, no habit


def test_a_model_of_scenes_is_scored_on_a_table_of_the_same_words(tmp_path: Path) -> None:
    Image.new("RGB", (100, 100)).save(tmp_path / "a.png")
    Image.new("RGB", (100, 100), "red").save(tmp_path / "b.png")
    (tmp_path / "t.csv").write_text("image,query,label,split\na.png,3,red,test\nb.png,5,blue,test\n")
    found = saccade.evaluate("soft-mref", data=f"csv:{tmp_path / 't.csv'}", sweeps=0, device="cpu")
    assert (found["data"], found["n"]) == ("csv", 2)
    with pytest.raises(DataError, match="cannot be read"):
        saccade.evaluate("soft-mref", data="csv:nowhere.csv", device="cpu")


def cli(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def boxed(tmp_path: Path) -> Path:
    rows = ["image,query,label,split,box"]
    for n in range(5):
        Image.new("RGB", (40, 30), (40 * n, 0, 0)).save(tmp_path / f"{n}.png")
        rows += [f"{n}.png,left,a,train,0 0 20 30", f"{n}.png,right,b,train,20 0 40 30"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    return tmp_path / "t.csv"


def test_a_sheet_shows_one_question_for_each_picture(boxed, tmp_path):
    sheets = []
    for count in (1, 4):
        result = cli("data", "show", f"csv:{boxed}", "--split", "train", "--count", count, "--out", tmp_path / "s.png")
        assert result.exit_code == 0, result.output
        held = f"csv:{boxed}: 10 questions (train 10, val 0, test 0) about 5 pictures, 2 queries, 2 answers"
        assert held in " ".join(result.output.split())  # of the whole boxed, however few are shown
        sheets.append(Image.open(tmp_path / "s.png").size)
    assert sheets[1][0] > 3 * sheets[0][0] - 100  # four panels in a row, not eight, not one
