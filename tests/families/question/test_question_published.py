"""The reader of CUB-200-2011 on a miniature of eight species in the official layout."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from saccade.errors import DataError
from saccade.families.question import readers as published
from saccade.families.question.readers import CLICKS as OTHER
from saccade.families.question.readers import CubOptions, Part, VisualGenomeOptions, read_cub, read_visual_genome

PARTS = get_args(Part)
CLICKS = sorted({click for part in PARTS for click in OTHER.get(part, (part,))} | {"tail"})
COLOURS = ("black", "red", "white")
SPECIES = [f"{n:03d}.Bird_{n}" for n in range(1, 9)]
PICTURES = 10  # of each species
CROWN_AND_WING = CubOptions(parts=("crown", "wing"), min_species=1)


def write_cub(folder: Path) -> Path:
    """Crowns: species 1 black, 2 nearly even, 3 a tie, the others red; wings white. Every second picture is to train.

    The left wing shows in all pictures, the right one too in every fifth; the crown is hidden in every third.
    """
    base = folder / "CUB_200_2011"
    for place in ("parts", "attributes", "images"):
        (base / place).mkdir(parents=True)
    kinds = [f"has_{part}_color" for part in PARTS] + ["has_bill_shape"]
    attributes = [f"{kind}::{colour}" for kind in kinds for colour in COLOURS]
    (folder / "attributes.txt").write_text("".join(f"{n} {name}\n" for n, name in enumerate(attributes, 1)))
    crowns = {0: (90, 5, 5), 1: (45, 40, 10), 2: (50, 50, 0)}
    lines = []
    for n in range(len(SPECIES)):
        percent = {kind: (0, 10, 80) for kind in kinds} | {"has_crown_color": crowns.get(n, (20.5, 60.5, 30))}
        lines.append(" ".join(str(value) for kind in kinds for value in percent[kind]) + " \n")
    (base / "attributes/class_attribute_labels_continuous.txt").write_text("".join(lines))
    (base / "classes.txt").write_text("".join(f"{n} {name}\n" for n, name in enumerate(SPECIES, 1)))
    (base / "parts/parts.txt").write_text("".join(f"{n} {name}\n" for n, name in enumerate(CLICKS, 1)))
    files: dict[str, list[str]] = {name: [] for name in ("images", "labels", "boxes", "split", "clicks")}
    for number in range(len(SPECIES) * PICTURES):
        species = SPECIES[number // PICTURES]
        name = f"{species}/{species[4:]}_{number}.jpg"
        (base / "images" / species).mkdir(exist_ok=True)
        (base / "images" / name).touch()
        files["images"].append(f"{number} {name}")
        files["labels"].append(f"{number} {number // PICTURES + 1}")
        files["boxes"].append(f"{number} 10.0 20.0 30.0 40.5")
        files["split"].append(f"{number} {int(number % 2 == 0)}")
        for n, click in enumerate(CLICKS, 1):
            hidden = (click == "crown" and number % 3 == 0) or (click == "right wing" and number % 5 > 0)
            files["clicks"].append(f"{number} {n} " + ("0.0 0.0 0" if hidden else f"{number}.5 {n}.0 1"))
    places = (
        "images.txt",
        "image_class_labels.txt",
        "bounding_boxes.txt",
        "train_test_split.txt",
        "parts/part_locs.txt",
    )
    for place, rows in zip(places, files.values()):
        (base / place).write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cub(tmp_path_factory.mktemp("cub"))


def reasons(skipped: tuple[str, ...]) -> dict[str, int]:
    found = [entry.partition(": ")[0] for entry in skipped]
    return {reason: found.count(reason) for reason in found}


def test_answers_are_what_most_people_said_and_clicks_are_evidence(folder):
    table = read_cub(folder, CROWN_AND_WING)
    assert (table.queries, table.answers, table.several) == (("crown", "wing"), ("black", "red", "white"), False)
    answers = {(row.group, row.query): row.labels for row in table.rows}
    assert answers["001.Bird_1", "crown"] == ("black",)
    assert answers["008.Bird_8", "crown"] == ("red",)
    assert answers["008.Bird_8", "wing"] == ("white",)
    row = next(row for row in table.rows if row.image.name == "Bird_8_71.jpg" and row.query == "crown")
    assert row.box == (10.0, 20.0, 40.0, 60.5)
    assert row.point == (71.5, CLICKS.index("crown") + 1)
    wing = next(row for row in table.rows if row.image.name == "Bird_8_71.jpg" and row.query == "wing")
    assert wing.point == (71.5, CLICKS.index("left wing") + 1)


def test_what_cannot_be_asked_is_counted(folder):
    table = read_cub(folder, CROWN_AND_WING)
    hidden = sum(number % 3 == 0 for number in range(80) if number // 10 not in (1, 2))
    assert reasons(table.skipped) == {
        "no colour named by enough people": 20,  # the crowns of species 2, of 45 %, and 3, a tie
        "not visible": hidden,
        "both sides show": 16,
    }
    assert len(table.rows) + len(table.skipped) == 160


def test_splits_by_picture_follow_the_official_lists(folder):
    table = read_cub(folder, CROWN_AND_WING)
    for row in table.rows:
        assert (row.split == "test") == (int(row.image.stem.rpartition("_")[2]) % 2 == 1)
    assert {row.group for row in table.rows if row.split == "test"} == set(SPECIES)
    assert 0 < table.count("val") < table.count("train")


def test_splits_by_species_share_none(folder):
    table = read_cub(folder, CubOptions(splits="species", parts=("wing",), min_species=1))
    groups = {split: {row.group for row in table.rows if row.split == split} for split in ("train", "val", "test")}
    assert {split: len(each) for split, each in groups.items()} == {"train": 5, "val": 1, "test": 2}
    assert len(set.union(*groups.values())) == 8
    again = read_cub(folder, CubOptions(splits="species", parts=("wing",), min_species=1))
    assert again.rows == table.rows


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda base: (base / "images.txt").unlink(), "no images.txt here or in CUB_200_2011"),
        (lambda base: (base / "bounding_boxes.txt").write_text("0 1 2 3\n"), "line 1 has 4 cells, expected 5"),
    ],
)
def test_damaged_folders_are_named(tmp_path, spoil, message):
    spoil(write_cub(tmp_path) / "CUB_200_2011")
    with pytest.raises((DataError, OSError), match=message):
        read_cub(tmp_path, CROWN_AND_WING)


ALL = VisualGenomeOptions(min_count=0)


def thing(name: str, attributes: list[str] | None, box=(1, 2, 3, 4)) -> dict[str, Any]:
    entry = {"names": [name], **dict(zip("xywh", box))}
    return entry if attributes is None else {**entry, "attributes": attributes}


def write(folder: Path, *images: list[dict[str, Any]]) -> Path:
    """Images 1, 2, … with these objects; the pictures are empty files in VG_100K."""
    (folder / "VG_100K").mkdir(exist_ok=True)
    numbers = range(1, len(images) + 1)
    for number in numbers:
        (folder / f"VG_100K/{number}.jpg").touch()
    entries = [{"image_id": n, "attributes": objects} for n, objects in zip(numbers, images)]
    (folder / "attributes.json").write_text(json.dumps(entries))
    return folder


def test_objects_of_a_class_are_one_question(tmp_path):
    objects = [
        thing("Cat ", ["black", " Fat"], (10, 20, 30, 40)),
        thing("cat", ["fat", "asleep"], (0, 50, 5, 30)),
        thing("dog", ["black"], (1, 1, 2, 2)),
    ]
    table = read_visual_genome(write(tmp_path, objects), ALL)
    cat, dog = sorted(table.rows, key=lambda row: row.query)
    assert (cat.query, cat.labels, cat.box) == ("cat", ("black", "fat", "asleep"), (0, 20, 40, 80))
    assert (dog.labels, dog.box, dog.image.stem) == (("black",), (1, 1, 3, 3), "1")
    assert cat.image == tmp_path / "VG_100K/1.jpg"
    assert table.several
    assert table.answers == ("asleep", "black", "fat")


def test_words_must_appear_more_often_than_the_limit(tmp_path):
    """cat 3, dog 2 (and a dog without attributes, which does not count); black 3, fat 2, asleep 2."""
    images = [
        [thing("cat", ["black"]), thing("dog", ["black", "fat"]), thing("dog", None)],
        [thing("cat", ["black", "asleep"]), thing("dog", ["fat"])],
        [thing("cat", ["asleep"])],
    ]
    table = read_visual_genome(write(tmp_path, *images), VisualGenomeOptions(min_count=2))
    assert (table.queries, table.answers) == (("cat",), ("black",))
    assert sorted(row.image.stem for row in table.rows) == ["1", "2"]
    assert table.skipped == ("no frequent class with a frequent attribute: image 3",)
    assert len(read_visual_genome(tmp_path, VisualGenomeOptions(min_count=1)).rows) == 5
    with pytest.raises(DataError, match=r"no class appears more than 3 times; set data\.options\.min_count"):
        read_visual_genome(tmp_path, VisualGenomeOptions(min_count=3))


def test_splits_have_the_papers_proportions(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "_PAPER_IMAGES", 45)
    monkeypatch.setattr(published, "_PAPER_HELD_OUT", 10)
    images = [[thing("cat", ["black"]), thing("dog", ["black"])]] * 60
    table = read_visual_genome(write(tmp_path, *images), VisualGenomeOptions(0, images=45))
    splits = {split: {row.image.stem for row in table.rows if row.split == split} for split in ("train", "val", "test")}
    assert [len(splits[split]) for split in ("train", "val", "test")] == [25, 10, 10]
    assert len(set.union(*splits.values())) == 45
    assert sum(entry.startswith("more than the images asked for") for entry in table.skipped) == 15
    assert read_visual_genome(tmp_path, VisualGenomeOptions(0, images=45)).rows == table.rows


@pytest.mark.parametrize("text", ['[{"image_id": 1, "attributes": [{"names": ["cat"]}]}]', "[7"])
def test_another_layout_is_named(tmp_path, text):
    write(tmp_path, [thing("cat", ["black"])])
    (tmp_path / "attributes.json").write_text(text)
    with pytest.raises(DataError, match=str(tmp_path)):
        read_visual_genome(tmp_path, ALL)
