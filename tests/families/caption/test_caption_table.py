"""Tables of captions of one's own: what is read, and every row that cannot be used."""

import json
from pathlib import Path

import pytest
from saccade.families.caption.table import CaptionOptions, CaptionTable, read_caption_csv, read_caption_jsonl

from saccade.config import from_dict
from saccade.errors import ConfigError, DataError

STRICT = CaptionOptions(strict=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that stand for pictures; a reader decodes none of them."""
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(f"not decoded: {name}".encode())
    return tmp_path


def csv(folder: Path, text: str, options: CaptionOptions = CaptionOptions()) -> CaptionTable:
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return read_caption_csv(folder / "t.csv", options)


def jsonl(folder: Path, *rows: object, options: CaptionOptions = CaptionOptions()) -> CaptionTable:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return read_caption_jsonl(folder / "t.jsonl", options)


def test_rows_of_one_picture_are_gathered(folder):
    table = csv(
        folder,
        'image,caption,split\na.png,A dog.,train\nb.png,"A cat, red.",test\na.png,  Two \t dogs ,train\n',
        STRICT,
    )
    assert [(row.image.name, row.captions, row.split) for row in table.rows] == [
        ("a.png", ("A dog.", "Two dogs"), "train"),
        ("b.png", ("A cat, red.",), "test"),
    ]
    assert (table.name, table.skipped) == (f"csv:{folder / 't.csv'}", ())
    assert [table.count(split) for split in ("train", "val", "test")] == [1, 0, 1]
    assert list(table.captions("train")) == ["A dog.", "Two dogs"]
    assert table.some("train", 0).count("train") == 0
    assert table.some("train", 0).count("test") == 1


def test_splits_without_a_column_keep_a_picture_whole(folder):
    names = [f"{number}.png" for number in range(60)]
    for name in names:
        (folder / name).write_text(name)
    table = csv(folder, "image,caption\n" + "".join(f"{name},one\n{name},two\n" for name in names), STRICT)
    assert len(table.rows) == 60
    assert all(len(row.captions) == 2 for row in table.rows)
    assert 30 < table.count("train") < 50
    assert table.count("val") + table.count("test") == 60 - table.count("train")


@pytest.mark.parametrize(
    ("row", "skipped"),
    [
        ("a.png,,train", "empty caption: line 3"),
        ("a.png,...,train", "empty caption: line 3, '...' has no word"),
        (",A cat,train", "empty image: line 3"),
        ("z.png,A cat,train", "no such picture in {folder}: line 3, z.png"),
        ("a.png,A cat,trian", "unknown split: line 3, 'trian' is none of train, val, test"),
        ("a.png,A dog,train", "duplicate: line 3, 'A dog'"),
        ("a.png,A cat,train,more", "more cells than columns: line 3, quote cells that hold commas"),
    ],
)
def test_rows_that_cannot_be_used(folder, row, skipped):
    text = f"image,caption,split\na.png,A dog,train\n{row}\n"
    table = csv(folder, text)
    assert table.skipped == (skipped.format(folder=folder),)
    assert [row.captions for row in table.rows] == [("A dog",)]
    with pytest.raises(DataError, match="strict, and 1 caption cannot be used"):
        csv(folder, text, STRICT)


@pytest.mark.parametrize(
    ("row", "skipped"),
    [
        ("{", "not a JSON object: line 2"),
        ({"image": "a.png", "caption": ["x"]}, 'no caption: line 2, found ["x"]'),
        ({"image": "a.png", "captions": [3]}, "caption is not text: line 2, 3"),
        ({"image": "a.png"}, "no caption: line 2"),
    ],
)
def test_json_lines_that_cannot_be_used(folder, row, skipped):
    assert jsonl(folder, {"image": "a.png", "caption": "A dog"}, row).skipped == (skipped,)


def test_files_that_cannot_be_used(folder):
    with pytest.raises(DataError, match="no column caption"):
        csv(folder, "image,captoin\na.png,x\n")
    with pytest.raises(DataError, match="no caption can be used; left out 1 × no such picture in /"):
        csv(folder, "image,caption\nz.png,A dog\n")
    with pytest.raises(DataError, match="csv: it is empty; add a row for each picture"):
        csv(folder, "image,caption\n")
    (folder / "t.csv").write_bytes("image,caption\na.png,caf\xe9\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_caption_csv(folder / "t.csv", STRICT)
    with pytest.raises(ConfigError, match="captions"):
        from_dict(CaptionOptions, {"captions": 0})
