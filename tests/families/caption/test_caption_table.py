"""Tables of captions of one's own: how captions of a picture are gathered, and those that cannot be used."""

import json
from pathlib import Path

import pytest

from quiet_tables import pretend_pictures, table_of
from saccade.config import from_dict
from saccade.data import Table
from saccade.errors import ConfigError, DataError
from saccade.families.caption.published import CaptionOptions
from saccade.families.caption.task import summary_of
from saccade.families.caption.vocabulary import Vocabulary


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return pretend_pictures(tmp_path)


def csv(folder: Path, text: str, **options: object) -> Table:
    return table_of(folder / "t.csv", text, "caption", **options)


def jsonl(folder: Path, *rows: object) -> Table:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    return table_of(folder / "t.jsonl", "\n".join(lines), "caption")


THREE = 'image,caption,split\na.png,A dog.,train\nb.png,"A cat, red.",test\na.png,  Two \t dogs ,train\n'


def test_rows_of_one_picture_are_gathered(folder):
    table = csv(folder, THREE, strict=True)
    assert [(row.image.name, row.labels, row.split) for row in table.rows] == [
        ("a.png", ("A dog.", "Two dogs"), "train"),
        ("b.png", ("A cat, red.",), "test"),
    ]
    assert [table.count(split) for split in ("train", "val", "test")] == [1, 0, 1]
    assert "3 captions, 9 words" in summary_of(table, Vocabulary(tuple("abcdefghi")))
    assert [row.labels for row in csv(folder, THREE, captions=1).rows] == [("A dog.",), ("A cat, red.",)]


def test_a_list_of_captions_is_as_many_rows(folder):
    (row,) = jsonl(folder, {"image": "a.png", "captions": ["A dog", "Two  dogs"]}).rows
    assert row.labels == ("A dog", "Two dogs")


@pytest.mark.parametrize(
    ("row", "skipped"),
    [
        ({"image": "a.png", "caption": " "}, "empty caption: line 2"),
        ({"image": "a.png", "caption": "..."}, "empty caption: line 2, '...' has no word"),
        ({"image": "a.png", "caption": "A dog"}, "duplicate: line 2, A dog"),
        ("{", "not a JSON object: line 2"),
        ({"image": "a.png", "caption": ["x"]}, 'no caption: line 2, found ["x"]'),
        ({"image": "a.png", "captions": [None]}, "no caption: line 2"),
        ({"image": "a.png"}, "no caption: line 2"),
    ],
)
def test_rows_that_cannot_be_used(folder, row, skipped):
    table = jsonl(folder, {"image": "a.png", "caption": "A dog"}, row)
    assert table.skipped == (skipped,)
    assert [row.labels for row in table.rows] == [("A dog",)]


def test_what_cannot_be_used_at_all_is_refused(folder):
    with pytest.raises(DataError, match="strict"):
        csv(folder, THREE + "c.png,,train\n", strict=True)
    with pytest.raises(DataError, match=r"z\.png"):
        csv(folder, "image,caption\nz.png,A dog\n")
    with pytest.raises(ConfigError, match="captions"):
        from_dict(CaptionOptions, {"captions": 0})
