"""CUB-200-2011 for classifiers: species as labels, official lists, boxes as evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from saccade.data import read_table
from saccade.errors import DataError
from saccade.families.classify.data import LabelDataConfig
from saccade.families.classify.task import ClassifyTask

SPECIES = ("001.Black_footed_Albatross", "002.Laysan_Albatross")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_species_splits_and_boxes(folder: Path) -> None:
    """Names in words; test is the official list, val a part of train; a missing picture is counted."""
    with pytest.warns(UserWarning, match="left out 1 × no such picture"):
        table = read_table(f"cub:{folder}")
    assert table.answers == ("Black footed Albatross", "Laysan Albatross")
    number = {row.image.name: int(row.image.stem.partition("_")[2]) for row in table.rows}
    assert all((row.split == "test") == (number[row.image.name] % 2 == 0) for row in table.rows)
    assert len(table.rows) == 15
    assert table.skipped == ("no such picture: bird_16.png",)
    assert all(row.box == (0.0, 0.0, 20.0, 20.0) for row in table.rows)


def test_boxes_are_evidence_in_the_network_input(folder: Path) -> None:
    """A picture of 40 × 20 in an input of 40 × 40 has its bird in the left half of the middle rows."""
    with pytest.warns(UserWarning, match="no such picture"):
        data = ClassifyTask.open(LabelDataConfig(name=f"cub:{folder}", size=(40, 40)), "test")
    batch = data.take(torch.arange(2))
    assert batch.evidence is not None
    expected = torch.zeros(40, 40, dtype=torch.bool)
    expected[10:30, :20] = True
    assert torch.equal(batch.evidence[0], expected)


def test_a_folder_that_is_not_cub_is_named(tmp_path: Path) -> None:
    """With what was looked for."""
    with pytest.raises(DataError, match=r"images\.txt"):
        read_table(f"cub:{tmp_path}")
