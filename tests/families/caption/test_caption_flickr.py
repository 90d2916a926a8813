"""Flickr8k and Flickr30k in their official layouts, and Karpathy's JSON of them."""

import json
from functools import partial
from pathlib import Path

import pytest

from saccade.errors import DataError
from saccade.families.caption import published
from saccade.families.caption.published import FlickrOptions, read_flickr

PICTURES = {"train": [f"t{n}.jpg" for n in range(6)], "val": ["v0.jpg", "v1.jpg"], "test": ["s0.jpg"]}
LISTS = {"train": "Flickr_8k.trainImages.txt", "val": "Flickr_8k.devImages.txt", "test": "Flickr_8k.testImages.txt"}
OFFICIAL, ON_DEV = FlickrOptions(), FlickrOptions(splits="dev")
read_flickr8k = partial(read_flickr, "flickr8k")


def captions(names: list[str], each: int = 2) -> str:
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
    (tmp_path / "Flickr8k.token.txt").write_text(captions([*everything, "unlisted.jpg"]))
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
        (b"t0.jpg#0\tAgain\n", "duplicate: Flickr8k.token.txt line 21, t0.jpg#0"),
        (b"t0.jpg#5\n", "not PICTURE#NUMBER, tab, caption: Flickr8k.token.txt line 21, 't0.jpg#5'"),
        (b"t0.jpg#5\t. !\n", "empty caption: Flickr8k.token.txt line 21, '. !' has no word"),
        (b"t0.jpg A dog\n", "not PICTURE#NUMBER, tab, caption: Flickr8k.token.txt line 21, 't0.jpg A dog'"),
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


def karpathy(folder: Path, **changes: object) -> Path:
    images = [
        {
            "filename": name,
            "imgid": number,
            "split": split,
            "sentences": [{"raw": f"Caption {n} of {name} .", "tokens": ["caption"]} for n in range(2)],
        }
        for split, names in PICTURES.items()
        for number, name in enumerate(names)
    ]
    images[0] |= changes
    (folder / "dataset_flickr8k.json").write_text(json.dumps({"images": images, "dataset": "flickr8k"}))
    return folder


def test_a_file_of_another_layout_is_named(folder):
    karpathy(folder)
    (folder / "dataset_flickr8k.json").write_text('{"images": [{"id": 3}]}')
    with pytest.raises(DataError, match="lacks filename, split or sentences"):
        read_flickr8k(folder, OFFICIAL)
    (folder / "dataset_flickr8k.json").write_text('{"images": [')
    with pytest.raises(DataError, match="dataset_flickr8k"):
        read_flickr8k(folder, OFFICIAL)


def test_flickr30k_by_lists_of_bare_numbers(tmp_path):
    (tmp_path / "flickr30k-images").mkdir()
    for name in ("1.jpg", "2.jpg", "3.jpg"):
        (tmp_path / "flickr30k-images" / name).write_bytes(b"")
    (tmp_path / "results_20130124.token").write_text(captions(["1.jpg", "2.jpg", "3.jpg"], each=5))
    for split, number in (("train", "1"), ("val", "2"), ("test", "3")):
        (tmp_path / f"{split}.txt").write_text(f"{number}\n")
    table = read_flickr("flickr30k", tmp_path, OFFICIAL)
    assert [(row.image.name, row.split, len(row.labels)) for row in table.rows] == [
        ("1.jpg", "train", 5),
        ("2.jpg", "val", 5),
        ("3.jpg", "test", 5),
    ]
