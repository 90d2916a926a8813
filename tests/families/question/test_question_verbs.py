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
from typer.testing import CliRunner

import saccade
from question_tables import COLOURS, SPLITS, write_table
from saccade.commands import door
from saccade.commands.door import app
from saccade.commands.report import run_looks
from saccade.commands.train import data_of, spelt_out
from saccade.engine.loop import RunResult
from saccade.errors import ConfigError, DataError
from saccade.models.io.facts import Score, read_facts
from visual_genome_miniature import write_miniature

CONTRACT = {
    "model", "data", "split", "protocol", "n", "seed", "definition", "metrics", "attention", "baselines", "intervals",
    "counts", "seconds", "verdict", "against", "rests_on",
}  # fmt: skip
ONE_LABEL = {"confusion", "per_class", "mistakes"}
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


def test_the_contract(run: Path, table: Path) -> None:
    found = scored(run, f"csv:{table}")
    assert set(found) == CONTRACT | ONE_LABEL
    assert (found["data"], found["split"], found["protocol"], found["n"]) == ("csv", "test", None, N)
    assert found["counts"]["skipped_rows"] == 0
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    saccade.config.from_dict(Score, found)  # what a record of it is read by
    assert scored(run, data_of(run), split="val", limit=4)["n"] == 4  # a run remembers its table


def test_the_command_ends_with_the_verdict(run: Path, table: Path) -> None:
    result = CliRunner().invoke(app, ["evaluate", str(run), "--data", f"csv:{table}", "--device", "cpu"])
    assert result.exit_code == 0, result.output
    said = scored(run, f"csv:{table}")["verdict"]
    assert "% by " in said
    assert " ".join(result.stdout.split()).endswith(f"{said}.")
    assert "what the answers depend on" in result.stdout


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


def test_without_evidence_nothing_can_be_taught_of_places(tmp_path: Path) -> None:
    bare = write_table(tmp_path / "bare", evidence="")
    with pytest.raises(ConfigError, match=r"phase '.*': loss: evidence_weight needs training pictures with evidence"):
        train(tmp_path / "run", f"csv:{bare}", *SMALL, "phases.0.loss={name: default, evidence_weight: 1}")
    with pytest.raises(ConfigError, match="evidence_weight"):
        train(tmp_path / "run", f"csv:{bare}", *SMALL, "phases.0.loss={name: default, evidence_weight: -1}")


def test_a_run_begins_by_saying_what_it_learns_from(run: Path, table: Path) -> None:
    told = rf"csv:{table}: \d+ questions \(train \d+, val \d+, test {N}\) about \d+ pictures, \d+ queries, \d+ answers"
    assert re.search(rf"{told}; an epoch is \d+ steps?\n", (run / "log.txt").read_text(encoding="utf-8"))


def test_the_report_asks_about_pictures_of_the_table_as_long_as_it_is_there(run: Path, tmp_path: Path) -> None:
    section = run_looks(run, 3, "cpu")
    assert section is not None
    (gallery,) = section.blocks
    told = [picture.caption for picture in gallery.pictures]
    assert len(told) == 3
    assert all(re.fullmatch(rf"\w+: \w+, \d+% sure; true: ({'|'.join(COLOURS)})", caption) for caption in told), told
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    settings = moved / "config.yaml"
    settings.write_text(re.sub(r"csv:\S+", "csv:/nowhere/t.csv", settings.read_text(encoding="utf-8")))
    gone = run_looks(moved, 3, "cpu")
    assert gone is not None
    assert "cannot be shown: /nowhere/t.csv: cannot be read" in gone.text


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


def test_on_a_truncated_deep_backbone(table: Path, tmp_path: Path) -> None:
    deep = ("model.config.through=block3", "model.config.gated=[block1]", "phases.0.epochs=1")
    train(tmp_path / "run", f"csv:{table}", *deep, backbone="mobilenetv2")
    assert read_facts(tmp_path / "run" / "model").model["backbone"] == "mobilenetv2"
    found = scored(tmp_path / "run", f"csv:{table}")
    assert list(found["attention"]["by_look"]) == ["block1", "block3"]
    seen = saccade.load(tmp_path / "run", "cpu").look(table.parent / "00.png", ask="upper")
    assert seen.trace.looks[-1].weights.shape == (1, 12, 12)


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


def test_the_model_folder_keeps_no_path_and_the_run_folder_does(run: Path, table: Path) -> None:
    assert str(table) in (run / "config.yaml").read_text()
    for file in (run / "model").iterdir():
        assert str(table.parent).encode() not in file.read_bytes(), file.name


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
    with pytest.raises(ConfigError, match="does not store where its pictures are; give `data=csv:PATH`"):
        scored(run, None)
    with pytest.raises(ConfigError, match="`glyphs` is about generated scenes"):
        scored(run, f"csv:{table}", glyphs="pack")
    with pytest.raises(ConfigError, match="`protocol` is about generated scenes"):
        scored(run, f"csv:{table}", protocol="authors")
    with pytest.raises(ConfigError, match="`drawing` is about generated scenes"):
        scored(run, f"csv:{table}", drawing="authors")
    with pytest.raises(ConfigError, match="split"):
        scored(run, f"csv:{table}", split="tset")
    with pytest.raises(DataError, match="no reader 'cvs': did you mean 'csv'"):
        scored(run, f"cvs:{table}")


def test_a_question_outside_the_classes_is_named(run: Path, table: Path) -> None:
    predictor = saccade.load(run, "cpu")
    with pytest.raises(DataError, match="cannot be asked 'uper': did you mean 'upper'"):
        predictor.look(table.parent / "00.png", ask="uper")


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


def test_one_label_and_several_do_not_mix(run: Path, tmp_path: Path) -> None:
    several = write_table(tmp_path / "several", several=True)
    several.write_text(several.read_text().replace("; square", ""))
    with pytest.raises(ConfigError, match="has several labels for a question, but the model answers with one"):
        scored(run, f"csv:{several}")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda text: text.replace("label", "colour"), DataError, "no column label"),
        (lambda text: re.sub(r"\d\d\.png", "none.png", text), DataError, "no row can be used.*no such picture"),
        (lambda text: "", DataError, "no column image, label"),
    ],
)
def test_tables_that_cannot_be_used_are_named(
    table: Path, tmp_path: Path, change: Any, error: type, words: str
) -> None:
    broken = table.with_name("broken.csv")
    broken.write_text(change(table.read_text()))
    with pytest.raises(error, match=words):
        train(tmp_path / "run", f"csv:{broken}")
    assert not (tmp_path / "run").exists()


def test_options_of_one_reader_are_not_those_of_another(run: Path, table: Path, tmp_path: Path) -> None:
    """A model trained with options of its reader is scored through another reader without them."""
    strict = train(tmp_path / "strict", f"csv:{table}", *SMALL, "data.options.strict=true", "phases.0.epochs=1").out
    assert read_facts(strict / "model").data["options"] == {"strict": True}
    columns = table.read_text().splitlines()[0].split(",")
    rows = [dict(zip(columns, line.split(","))) for line in table.read_text().splitlines()[1:]]
    lines = table.with_name("table.jsonl")
    lines.write_text("\n".join(json.dumps(row) for row in rows))
    by_csv, by_jsonl = scored(strict, f"csv:{table}"), scored(strict, f"jsonl:{lines}")
    assert by_jsonl["data"] == "jsonl"
    assert by_jsonl["metrics"] == by_csv["metrics"]


@pytest.mark.parametrize("model", ["soft", "hard", "hattnet-ctx", "cross", "film", "blind"])
def test_the_recipes_of_birds_train(table: Path, tmp_path: Path, model: str) -> None:
    """Both phases of every row, on a table instead of birds, without published weights and cut off early."""
    smaller = (
        "model.config.pretrained=false", "phases.1.epochs=1", "phases.0.epochs=1", "data.options={}", "batch_size=36",
        "phases.1.schedule.warmup=0", "phases.0.schedule.warmup=0", "data.size=[64,64]",
    )  # fmt: skip
    result = saccade.train(
        f"{model}-cub", data=f"csv:{table}", out=tmp_path / "run", overrides=smaller, device="cpu", quiet=True
    )
    assert (result.stopped, result.phase, result.step) == ("finished", "tune", 4)
    trained = saccade.load(tmp_path / "run", "cpu").model
    assert trained.look_name == "block13"


@pytest.mark.parametrize(("model", "prior"), [("soft", False), ("hard", True), ("hattnet-ctx", True)])
def test_the_recipes_of_visual_genome_train(tmp_path: Path, model: str, prior: bool) -> None:
    """The paper's task on a miniature in the official layout: several labels, a cut backbone, small pictures."""
    folder = write_miniature(tmp_path / "vg", images=40)
    gates = ["model.config.gated=[pool1]"] if model == "hattnet-ctx" else []
    smaller = [
        "model.config.pretrained=false", "model.config.through=pool2", "model.config.hidden=8", "data.size=[32,32]",
        "batch_size=16", "phases.0.epochs=1", "phases.1.epochs=1", "phases.0.schedule.warmup=0",
        "phases.1.schedule.warmup=0", "data.options.min_count=5", f"model.config.prior={str(prior).lower()}", *gates,
    ]  # fmt: skip
    saccade.train(f"{model}-vg", data=f"vg:{folder}", out=tmp_path / "run", overrides=smaller, device="cpu", quiet=True)
    found = scored(tmp_path / "run", f"vg:{folder}")
    assert set(found) == CONTRACT
    assert {"weighted_map", "weighted_map_all_point", "top1", "swapped_query"} <= found["metrics"].keys()
    assert 0 < found["metrics"]["weighted_map"] <= 1
    assert found["attention"]["true_positive_strength"] > 0
    assert 0 < found["baselines"]["training_prior_by_query"]["weighted_map"] <= 1


@pytest.mark.parametrize("name", [None, "mref", "csv:"])
def test_names_stay_as_they_are(name: str | None) -> None:
    assert spelt_out(name) == name


def test_a_drive_is_no_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"'C:/birds.csv': there is no such file"):
        spelt_out("C:/birds.csv")
    (tmp_path / "C:").mkdir()
    (tmp_path / "C:" / "birds.csv").touch()
    assert spelt_out("C:/birds.csv") == f"csv:{tmp_path}/C:/birds.csv"


def test_paths_are_spelt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert spelt_out("csv:my: table #1.csv") == f"csv:{tmp_path}/my: table #1.csv"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert spelt_out("cub:~/birds") == f"cub:{tmp_path}/home/birds"


def test_a_path_may_hold_what_yaml_would_read(table: Path, tmp_path: Path) -> None:
    odd = table.with_name("my: table #1.csv")
    odd.write_text(table.read_text())
    assert train(tmp_path / "run", f"csv:{odd}", *SMALL, "phases.0.epochs=1").stopped == "finished"


def test_a_warning_is_one_line_at_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    door._warning(UserWarning("3 rows\nleft out"), UserWarning, "reader.py", 7)
    assert capsys.readouterr().err == "warning: 3 rows left out\n"


def test_a_model_of_scenes_is_scored_on_a_table_of_the_same_words(tmp_path: Path) -> None:
    Image.new("RGB", (100, 100)).save(tmp_path / "a.png")
    Image.new("RGB", (100, 100), "red").save(tmp_path / "b.png")
    (tmp_path / "t.csv").write_text("image,query,label,split\na.png,3,red,test\nb.png,5,blue,test\n")
    found = saccade.evaluate("soft-mref", data=f"csv:{tmp_path / 't.csv'}", sweeps=0, device="cpu")
    assert (found["data"], found["n"]) == ("csv", 2)
    with pytest.raises(DataError, match="cannot be read"):
        saccade.evaluate("soft-mref", data="csv:nowhere.csv", device="cpu")
