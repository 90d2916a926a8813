"""COCO captions: Karpathy's splits, and splits of our own cut from the official annotations."""

import json
from pathlib import Path

import pytest

from saccade.errors import DataError
from saccade.families.caption import published
from saccade.families.caption.published import CocoOptions, read_coco

PLAIN, WITH_REST = CocoOptions(), CocoOptions(restval=True)


def counts(table) -> list[int]:
    return [table.count(split) for split in ("train", "val", "test")]


def pictures(folder: Path, part: str, count: int) -> list[str]:
    (folder / part).mkdir(parents=True)
    names = [f"COCO_{part}_{number:012d}.jpg" for number in range(count)]
    for name in names:
        (folder / part / name).write_bytes(b"not read")
    return names


def annotate(folder: Path, part: str, names: list[str], each: int = 6) -> dict:
    content = {
        "info": {"year": 2014},
        "images": [{"id": number, "file_name": name} for number, name in enumerate(names)],
        "annotations": [
            {"id": each * number + n, "image_id": number, "caption": f"Caption {n}"}
            for n in range(each)
            for number in range(len(names))
        ],
    }
    (folder / "annotations").mkdir(exist_ok=True)
    (folder / "annotations" / f"captions_{part}.json").write_text(json.dumps(content))
    return content


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part, count in (("train2014", 4), ("val2014", 9)):
        annotate(tmp_path, part, pictures(tmp_path, part, count))
    return tmp_path


def test_annotations_are_cut_into_val_test_and_the_rest(folder, monkeypatch):
    assert counts(read_coco(folder, PLAIN)) == [4, 4, 4]  # fewer than 10,000: half of them each
    monkeypatch.setattr(published, "COCO_HELD_OUT", 2)
    assert counts(read_coco(folder, PLAIN)) == [4, 2, 2]
    table = read_coco(folder, WITH_REST)
    assert counts(table) == [9, 2, 2]
    assert table.skipped == ()
    assert all(len(row.labels) == 5 for row in table.rows)  # the sixth is dropped
    assert table.rows[0].labels == tuple(f"Caption {n}" for n in range(5))


def test_what_cannot_be_used_is_counted(folder):
    content = json.loads((folder / "annotations/captions_train2014.json").read_text())
    content["annotations"] += [
        {"id": 900, "image_id": 77, "caption": "of nothing"},
        {"id": 0, "image_id": 0, "caption": "again"},
        {"id": 901, "image_id": 0, "caption": " "},
    ]
    (folder / "annotations/captions_train2014.json").write_text(json.dumps(content))
    (folder / "train2014" / content["images"][3]["file_name"]).unlink()
    table = read_coco(folder, PLAIN)
    assert counts(table) == [3, 4, 4]
    assert table.skipped[-3:] == (
        "no such picture: captions_train2014.json annotation 900, image 77",
        "duplicate: captions_train2014.json annotation 0, 0",
        "empty caption: captions_train2014.json annotation 901",
    )
    assert sum(entry.startswith("no such picture") for entry in table.skipped) == 7


def test_karpathys_splits(folder):
    def entry(part: str, number: int, split: str) -> dict:
        name = f"COCO_{part}_{number:012d}.jpg"
        return {"filepath": part, "filename": name, "split": split, "sentences": [{"raw": "A dog"}] * 6}

    entries = [entry("train2014", 0, "train"), entry("val2014", 0, "val"), entry("val2014", 1, "test")]
    entries += [entry("val2014", 2, "restval"), entry("val2014", 99, "test")]
    (folder / "dataset_coco.json").write_text(json.dumps({"images": entries, "dataset": "coco"}))
    table = read_coco(folder, PLAIN)
    assert counts(table) == [1, 1, 1]
    assert table.skipped == ("no such picture: COCO_val2014_000000000099.jpg, val2014/COCO_val2014_000000000099.jpg",)
    assert table.rows[0].labels == ("A dog",) * 5  # said by several people
    assert counts(read_coco(folder / "dataset_coco.json", WITH_REST)) == [2, 1, 1]


def test_what_is_not_coco_is_named(folder, tmp_path):
    with pytest.raises(DataError, match=r"neither dataset_coco\.json"):
        read_coco(tmp_path / "nowhere", PLAIN)
    (folder / "annotations/captions_train2014.json").write_text('{"images": [{"file_name": "x"}]}')
    with pytest.raises(DataError, match="captions_train2014"):
        read_coco(folder, PLAIN)
    (folder / "annotations/captions_train2014.json").write_text('{"images": [3]}')
    with pytest.raises(DataError, match="captions_train2014"):
        read_coco(folder, PLAIN)
