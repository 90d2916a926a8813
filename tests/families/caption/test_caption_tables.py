"""Captions of your own tables, COCO and Flickr: splits, several captions a picture, and what cannot be used."""

import json
from functools import partial
from pathlib import Path

import pytest

from saccade.data import Table
from saccade.errors import DataError
from saccade.families.caption import published
from saccade.families.caption.published import CocoOptions, FlickrOptions, read_coco, read_flickr
from saccade.families.caption.task import summary_of
from saccade.families.caption.vocabulary import Vocabulary
from small_tables import pretend_pictures, table_of


@pytest.fixture
def pictures_folder(tmp_path: Path) -> Path:
    return pretend_pictures(tmp_path)


def csv(pictures_folder: Path, text: str, **options: object) -> Table:
    return table_of(pictures_folder / "t.csv", text, "caption", **options)


def jsonl(pictures_folder: Path, *rows: object) -> Table:
    return table_of(pictures_folder / "t.jsonl", "\n".join(map(json.dumps, rows)), "caption")


THREE = 'image,caption,split\na.png,A dog.,train\nb.png,"A cat, red.",test\na.png,  Two \t dogs ,train\n'


def test_rows_of_one_picture_are_gathered(pictures_folder):
    table = csv(pictures_folder, THREE, strict=True)
    assert [(row.image.name, row.labels, row.split) for row in table.rows] == [
        ("a.png", ("A dog.", "Two dogs"), "train"),
        ("b.png", ("A cat, red.",), "test"),
    ]
    assert [table.count(split) for split in ("train", "val", "test")] == [1, 0, 1]
    assert "3 captions, 9 words" in summary_of(table, Vocabulary(tuple("abcdefghi")))
    assert [row.labels for row in csv(pictures_folder, THREE, captions=1).rows] == [("A dog.",), ("A cat, red.",)]


@pytest.mark.parametrize(
    ("row", "skipped"),
    [
        ({"image": "a.png", "caption": "..."}, "empty caption: line 2, '...' has no word"),
        ({"image": "a.png", "caption": "A dog"}, "duplicate: line 2, A dog"),
        ({"image": "a.png", "caption": ["x"]}, 'no caption: line 2, found ["x"]'),
    ],
)
def test_rows_that_cannot_be_used(pictures_folder, row, skipped):
    table = jsonl(pictures_folder, {"image": "a.png", "caption": "A dog"}, row)
    assert table.skipped == (skipped,)
    assert [row.labels for row in table.rows] == [("A dog",)]


PLAIN, WITH_REST = CocoOptions(), CocoOptions(restval=True)


def coco_pictures(coco: Path, part: str, count: int) -> list[str]:
    (coco / part).mkdir(parents=True)
    names = [f"COCO_{part}_{number:012d}.jpg" for number in range(count)]
    for name in names:
        (coco / part / name).write_bytes(b"not read")
    return names


def annotate(coco: Path, part: str, names: list[str], each: int = 6) -> dict:
    content = {
        "info": {"year": 2014},
        "images": [{"id": number, "file_name": name} for number, name in enumerate(names)],
        "annotations": [
            {"id": each * number + n, "image_id": number, "caption": f"Caption {n}"}
            for n in range(each)
            for number in range(len(names))
        ],
    }
    (coco / "annotations").mkdir(exist_ok=True)
    (coco / "annotations" / f"captions_{part}.json").write_text(json.dumps(content))
    return content


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    for part, count in (("train2014", 4), ("val2014", 9)):
        annotate(tmp_path, part, coco_pictures(tmp_path, part, count))
    return tmp_path


def test_annotations_are_cut_into_val_test_and_the_rest(coco, monkeypatch):
    assert counts(read_coco(coco, PLAIN)) == [4, 4, 4]  # fewer than 10,000: half of them each
    monkeypatch.setattr(published, "COCO_HELD_OUT", 2)
    assert counts(read_coco(coco, PLAIN)) == [4, 2, 2]
    table = read_coco(coco, WITH_REST)
    assert counts(table) == [9, 2, 2]
    assert table.skipped == ()
    assert all(len(row.labels) == 5 for row in table.rows)  # the sixth is dropped
    assert table.rows[0].labels == tuple(f"Caption {n}" for n in range(5))


def test_karpathys_splits(coco):
    def entry(part: str, number: int, split: str) -> dict:
        name = f"COCO_{part}_{number:012d}.jpg"
        return {"filepath": part, "filename": name, "split": split, "sentences": [{"raw": "A dog"}] * 6}

    entries = [entry("train2014", 0, "train"), entry("val2014", 0, "val"), entry("val2014", 1, "test")]
    entries += [entry("val2014", 2, "restval"), entry("val2014", 99, "test")]
    (coco / "dataset_coco.json").write_text(json.dumps({"images": entries, "dataset": "coco"}))
    table = read_coco(coco, PLAIN)
    assert counts(table) == [1, 1, 1]
    assert table.skipped == ("no such picture: COCO_val2014_000000000099.jpg, val2014/COCO_val2014_000000000099.jpg",)
    assert table.rows[0].labels == ("A dog",) * 5  # said by several people
    assert counts(read_coco(coco / "dataset_coco.json", WITH_REST)) == [2, 1, 1]


def test_what_is_not_coco_is_named(coco, tmp_path):
    with pytest.raises(DataError, match=r"neither dataset_coco\.json"):
        read_coco(tmp_path / "nowhere", PLAIN)
    (coco / "annotations/captions_train2014.json").write_text('{"images": [3]}')
    with pytest.raises(DataError, match="captions_train2014"):
        read_coco(coco, PLAIN)


PICTURES = {"train": [f"t{n}.jpg" for n in range(6)], "val": ["v0.jpg", "v1.jpg"], "test": ["s0.jpg"]}
LISTS = {"train": "Flickr_8k.trainImages.txt", "val": "Flickr_8k.devImages.txt", "test": "Flickr_8k.testImages.txt"}
OFFICIAL, ON_DEV = FlickrOptions(), FlickrOptions(splits="dev")
read_flickr8k = partial(read_flickr, "flickr8k")


def token_lines(names: list[str], each: int = 2) -> str:
    return "".join(f"{name}#{n}\tCaption {n} of {name} .\n" for name in names for n in range(each))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Flickr8k in small; one picture is in no list."""
    (tmp_path / "Images").mkdir()
    everything = [name for names in PICTURES.values() for name in names]
    for name in (*everything, "unlisted.jpg"):
        (tmp_path / "Images" / name).write_bytes(b"not read")
    for split, names in PICTURES.items():
        (tmp_path / LISTS[split]).write_text("\n".join(names))
    (tmp_path / "Flickr8k.token.txt").write_text(token_lines([*everything, "unlisted.jpg"]))
    return tmp_path


def add(folder: Path, line: bytes) -> None:
    tokens = folder / "Flickr8k.token.txt"
    tokens.write_bytes(tokens.read_bytes() + line)


def counts(table) -> list[int]:
    return [table.count(split) for split in ("train", "val", "test")]


def test_the_official_lists(folder):
    table = read_flickr8k(folder, OFFICIAL)
    assert counts(table) == [6, 2, 1]
    assert table.skipped == ()
    assert table.rows[0].labels == ("Caption 0 of t0.jpg .", "Caption 1 of t0.jpg .")
    assert table.rows[0].image == folder / "Images" / "t0.jpg"
    assert "unlisted.jpg" not in {row.image.name for row in table.rows}


def test_reporting_on_dev_holds_training_pictures_out(folder, monkeypatch):
    monkeypatch.setattr(published, "FLICKR_HELD_OUT", 2)
    table = read_flickr8k(folder, ON_DEV)
    assert counts(table) == [4, 2, 2]
    by_split = {split: {row.image.name for row in table.rows if row.split == split} for split in PICTURES}
    assert by_split["test"] == set(PICTURES["val"])
    assert by_split["train"] | by_split["val"] == set(PICTURES["train"])
    assert {row.image.name for row in read_flickr8k(folder, ON_DEV).rows if row.split == "val"} == by_split["val"]


@pytest.mark.parametrize(
    ("line", "skipped"),
    [
        (b"t0.jpg#5\n", "not PICTURE#NUMBER, tab, caption: Flickr8k.token.txt line 21, 't0.jpg#5'"),
        (b"t0.jpg#5\tcaf\xe9\n", "unreadable caption: Flickr8k.token.txt line 21, 'caf\\udce9'"),
    ],
)
def test_captions_that_cannot_be_used(folder, line, skipped):
    add(folder, line)
    table = read_flickr8k(folder, OFFICIAL)
    assert table.skipped == (skipped,)
    assert counts(table) == [6, 2, 1]


def test_folders_that_cannot_be_used(folder, tmp_path):
    for place in (tmp_path / "nowhere", folder / "Flickr8k.token.txt"):
        with pytest.raises(DataError, match="no pictures"):
            read_flickr8k(place, OFFICIAL)
    (folder / LISTS["val"]).write_text("t0.jpg\n")
    with pytest.raises(DataError, match="t0 is listed for train too"):
        read_flickr8k(folder, OFFICIAL)


def test_a_file_of_another_layout_is_named(folder):
    (folder / "dataset_flickr8k.json").write_text('{"images": [{"id": 3}]}')
    with pytest.raises(DataError, match="lacks filename, split or sentences"):
        read_flickr8k(folder, OFFICIAL)


def test_flickr30k_by_lists_of_bare_numbers(tmp_path):
    (tmp_path / "flickr30k-images").mkdir()
    for name in ("1.jpg", "2.jpg", "3.jpg"):
        (tmp_path / "flickr30k-images" / name).write_bytes(b"")
    (tmp_path / "results_20130124.token").write_text(token_lines(["1.jpg", "2.jpg", "3.jpg"], each=5))
    for split, number in (("train", "1"), ("val", "2"), ("test", "3")):
        (tmp_path / f"{split}.txt").write_text(f"{number}\n")
    table = read_flickr("flickr30k", tmp_path, OFFICIAL)
    assert [(row.image.name, row.split, len(row.labels)) for row in table.rows] == [
        ("1.jpg", "train", 5),
        ("2.jpg", "val", 5),
        ("3.jpg", "test", 5),
    ]
