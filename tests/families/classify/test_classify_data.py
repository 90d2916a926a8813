"""Pictures with labels as batches: files with evidence, birds, CIFAR-10 in both forms, and what is wrong with them."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from labelled_files import small_cifar, write_binary, write_package
from saccade.config import from_dict
from saccade.data import read_table
from saccade.errors import DataError
from saccade.families.classify.data import LabelDataConfig
from saccade.families.classify.task import ClassifyTask


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
