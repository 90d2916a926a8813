"""Pictures with labels as batches, and classifiers through every verb: trained on folders, scored, looked at."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import saccade
from labelled_files import class_folders, picture, small_cifar, write_binary, write_package
from saccade.commands.door import app
from saccade.config import from_dict
from saccade.data import read_table
from saccade.errors import ConfigError, DataError
from saccade.families.classify.data import LabelDataConfig
from saccade.families.classify.task import ClassifyTask
from saccade.record import read_record


def config(name: str, **settings: object) -> LabelDataConfig:
    return from_dict(LabelDataConfig, {"name": name, **settings})


def test_both_forms_hold_the_same_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_cifar(monkeypatch)
    binary, package = write_binary(tmp_path / "b" / "cifar-10-batches-bin").parent, write_package(tmp_path / "p")
    for split, count in (("train", 90), ("val", 10), ("test", 20)):
        one, other = (ClassifyTask.open(config(f"cifar10:{folder}"), split) for folder in (binary, package))
        assert one.size == other.size == count
        a, b = one.take(torch.arange(count)), other.take(torch.arange(count))
        assert torch.equal(a.images, b.images)
        assert torch.equal(a.label, b.label)
        assert a.images[a.label == 9].float().mean() > a.images[a.label == 0].float().mean()


def test_val_is_left_out_of_train_unless_all_is_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_cifar(monkeypatch)
    name = f"cifar10:{write_binary(tmp_path)}"
    train, val, everything = (
        ClassifyTask.open(config(name, hold_out=hold_out), split)
        for split, hold_out in (("train", True), ("val", True), ("train", False))
    )
    whole = everything.take(torch.arange(100)).images
    held = val.take(torch.arange(10)).images
    assert torch.equal(whole[9::10], held)
    kept = train.take(torch.arange(90)).images
    assert not any(torch.equal(one, other) for one in held for other in kept)
    assert config(name, hold_out=False).learns_val
    assert not config(name).learns_val


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("data_batch_2.bin", b"short", "5 bytes, and a batch has 61,460"),
        ("data_batch_3.bin", bytes([11]) * 20 * 3073, "labels of 0 to 9"),
        ("train_lables.json", b"[1, 2", "not a JSON list"),
    ],
)
def test_damaged_batches_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: bytes, message: str
) -> None:
    small_cifar(monkeypatch)
    folder = (write_binary if file.endswith(".bin") else write_package)(tmp_path)
    (folder / file).write_bytes(content)
    with pytest.raises(DataError, match=message):
        ClassifyTask.open(config(f"cifar10:{folder}"), "train")


def test_pickle_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "data_batch_1").write_bytes(b"\x80\x04.")
    with pytest.raises(DataError, match="is pickle and is not opened"):
        ClassifyTask.open(config(f"cifar10:{tmp_path}"), "train")


SPECIES = ("001.Black_footed_Albatross", "002.Laysan_Albatross")


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two species of eight pictures of 40 × 20 pixels; every other one is to train; the bird is the left half."""
    base = tmp_path_factory.mktemp("birds") / "CUB_200_2011"
    files: dict[str, list[str]] = {"images": [], "image_class_labels": [], "train_test_split": [], "bounding_boxes": []}
    for number in range(1, 17):
        species = SPECIES[number > 8]
        name = f"{species}/bird_{number}.png"
        (base / "images" / species).mkdir(parents=True, exist_ok=True)
        if number != 16:  # the last one is missing
            Image.new("RGB", (40, 20), (10 * number, 0, 0)).save(base / "images" / name)
        files["images"].append(f"{number} {name}")
        files["image_class_labels"].append(f"{number} {1 + (number > 8)}")
        files["train_test_split"].append(f"{number} {number % 2}")
        files["bounding_boxes"].append(f"{number} 0.0 0.0 20.0 20.0")
    files["classes"] = [f"{number} {name}" for number, name in enumerate(SPECIES, 1)]
    for name, lines in files.items():
        (base / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return base.parent


def test_species_splits_and_boxes(birds: Path) -> None:
    """Names in words; test is the official list, val a part of train; a missing picture is counted."""
    with pytest.warns(UserWarning, match="left out 1 × no such picture"):
        table = read_table(f"cub:{birds}")
    assert table.answers == ("Black footed Albatross", "Laysan Albatross")
    number = {row.image.name: int(row.image.stem.partition("_")[2]) for row in table.rows}
    assert all((row.split == "test") == (number[row.image.name] % 2 == 0) for row in table.rows)
    assert len(table.rows) == 15
    assert table.skipped == ("no such picture: bird_16.png",)
    assert all(row.box == (0.0, 0.0, 20.0, 20.0) for row in table.rows)


TINY = ["model.config.stem=large", "model.config.widths=[8,8,16,16]", "model.config.modules=[1,0,1]",
        "model.config.pools=[2,1,1]", "data.size=[32,32]", "batch_size=12", "phases.0.schedule.warmup=0",
        "phases.0.optimizer.lr=0.05", "phases.0.epochs=14", "phases.0.validate_every=14", "compile=false"]  # fmt: skip


def invoke(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return class_folders(tmp_path_factory.mktemp("classes"), splits=("train", "val", "test"))


def trained(out: Path, folders: Path, *overrides: str) -> Path:
    saccade.train("ran-56", out=out, data=f"folder:{folders}", overrides=[*TINY, *overrides], device="cpu", quiet=True)
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, folders: Path) -> Path:
    return trained(tmp_path_factory.mktemp("runs") / "mixed", folders)


@pytest.fixture(scope="module")
def evaluation(run: Path, folders: Path) -> dict[str, Any]:
    return saccade.evaluate(run, data=f"folder:{folders}", device="cpu")


def test_it_learns_colours(evaluation: dict[str, Any]) -> None:
    metrics = evaluation["metrics"]
    assert metrics["accuracy"] > 0.9
    assert 0 <= metrics["calibration_error"] < 0.6
    assert "top5" not in metrics  # of three classes
    assert evaluation["baselines"]["commonest_label"]["accuracy"] == pytest.approx(1 / 3)
    matrix = torch.tensor(evaluation["confusion"]["matrix"])
    assert matrix.sum(1).tolist() == [12, 12, 12]
    assert float(matrix.diag().sum() / matrix.sum()) == pytest.approx(metrics["accuracy"])


def test_a_look_says_the_class_and_shows_every_mask(run: Path, folders: Path, tmp_path: Path) -> None:
    file = folders / "test" / "green" / "3.png"
    told = json.loads(invoke("look", str(file), "--model", str(run), "--out", str(tmp_path), "--json"))
    told = told[0] if isinstance(told, list) else told
    assert told["answer"] == "green"
    assert {word for word, _ in told["alternatives"]} == {"red", "blue"}
    assert [look["name"] for look in told["looks"]] == ["stage1", "stage3"]
    trace = read_record(tmp_path / "3.json").trace
    assert [(look.kind, look.base, look.full is not None) for look in trace.looks] == [("gate", 1.0, True)] * 2


def test_masks_can_be_taught_where_to_look(tmp_path: Path, folders: Path) -> None:
    """RAN's masks, which are added to 1, from boxes; pictures that are shifted have no evidence to teach with."""
    rows = ["image,label,split,box"]
    for number, (colour, place) in enumerate((("red", 0), ("green", 1), ("blue", 2)) * 8):
        picture(place, 300 + number).save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png,{colour},{'train' if number < 18 else 'val'},5 4 15 14")
    (tmp_path / "t.csv").write_text("\n".join(rows))
    words = ["phases.0.loss={name: cross_entropy, evidence_weight: 0.5}", "phases.0.epochs=2"]

    def train(out: str, *more: str) -> Path:
        options = {"overrides": [*TINY, *words, *more], "device": "cpu", "quiet": True}
        saccade.train("ran-56", out=tmp_path / out, data=f"csv:{tmp_path / 't.csv'}", **options)
        return tmp_path / out

    with pytest.raises(ConfigError, match=r"data\.shift moves pictures without their evidence"):
        train("shifted")
    run = train("taught", "data.shift=null")
    assert "by evidence, with weight 0.5" in (run / "model" / "card.md").read_text("utf-8")
    seen = saccade.load(run, "cpu").look(tmp_path / "0.png")
    assert "the map was taught where to look by evidence, with weight 0.5" in seen.notes
    rows = [json.loads(line)["values"] for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert any(0 < row.get("evidence_loss", 0) < 5 for row in rows)


def test_masks_are_scored_beside_gradients_where_the_evidence_is_known(run: Path, tmp_path: Path) -> None:
    rows = ["image,label,split,box"]
    for number, (colour, place) in enumerate((("red", 0), ("green", 1), ("blue", 2)) * 4):
        picture(place, 200 + number).save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png,{colour},test,5 4 15 14")
    (tmp_path / "t.csv").write_text("\n".join(rows))
    found = saccade.evaluate(run, data=f"csv:{tmp_path / 't.csv'}", device="cpu")
    assert set(found["attention"]["by_look"]) == {"stage1", "stage3"}
    assert {"hirescam", "gradient_times_input", "uniform", "centre_gaussian"} <= set(found["baselines"])
    uniform, rival = (
        found["baselines"][name]["true_positive_strength"] for name in ("uniform", "gradient_times_input")
    )
    assert rival > uniform  # the answer hangs on the square


def test_top_5_and_cifar_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_cifar(monkeypatch)
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path))
    write_binary(tmp_path / "cifar10")
    overrides = [*TINY, "phases.0.epochs=1", "phases.0.validate_every=1"]
    saccade.train("ran-56", out=tmp_path / "run", overrides=overrides, device="cpu", quiet=True)
    found = saccade.evaluate(tmp_path / "run", device="cpu")  # it knows its data by name
    assert found["n"] == 20
    assert found["metrics"]["accuracy"] <= found["metrics"]["top5"]
    on_val = saccade.evaluate(tmp_path / "run", split="val", device="cpu")
    assert "choose nothing" in on_val["note"]
