"""The reader of Visual Genome: the paper's task, on hand-written entries and on a drawn miniature."""

import json
from pathlib import Path
from typing import Any

import pytest

from saccade.errors import DataError
from saccade.families.question import readers as published
from saccade.families.question.readers import VisualGenomeOptions, read_visual_genome

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


def test_objects_that_say_nothing_are_no_objects(tmp_path):
    objects = [
        thing("cat", ["black"]),
        thing(" ", ["black"]),
        thing("cow", [" "]),
        thing("pig", ["black"], (0, 0, 0, 5)),
    ]
    assert [row.query for row in read_visual_genome(write(tmp_path, objects), ALL).rows] == ["cat"]


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


def test_pictures_are_found_in_either_folder_and_counted_where_not(tmp_path):
    write(tmp_path, *[[thing("cat", ["black"])]] * 4)
    (tmp_path / "VG_100K_2").mkdir()
    (tmp_path / "VG_100K/2.jpg").rename(tmp_path / "VG_100K_2/2.jpg")
    (tmp_path / "VG_100K/3.jpg").unlink()
    table = read_visual_genome(tmp_path, ALL)
    assert {row.image.parent.name for row in table.rows if row.image.stem == "2"} == {"VG_100K_2"}
    assert table.skipped == ("no such picture: image 3, cat",)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("attributes.json", '{"image_id": 1}'),
        ("attributes.json", '[{"id": 1, "attributes": []}]'),
        ("attributes.json", '[{"image_id": 1}]'),
        ("attributes.json", '[{"image_id": 1, "attributes": [{"names": ["cat"]}]}]'),
        ("attributes.json", "[7]"),
        ("attributes.json", "[7"),
    ],
)
def test_another_layout_is_named(tmp_path, file, text):
    write(tmp_path, [thing("cat", ["black"])])
    (tmp_path / file).write_text(text)
    with pytest.raises(DataError, match=str(tmp_path)):
        read_visual_genome(tmp_path, ALL)
