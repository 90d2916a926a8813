"""A path alone: which reader it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from saccade.data.tables.readers import with_reader
from saccade.errors import DataError

NAMES = ("mref", "csv")
"""Data that has a name."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("classes/cat", "described", "many/train", "mref", "flat"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "classes" / "cat" / "1.png").touch()
    (tmp_path / "described" / "metadata.csv").touch()
    (tmp_path / "many" / "train" / "metadata.jsonl").touch()
    (tmp_path / "flat" / "1.png").touch()
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.parquet", "other.json"):
        (tmp_path / name).touch()
    (tmp_path / "coco.json").write_text('{"info": {}, "images": [], "annotations": []}')
    return tmp_path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("classes/", "folder:classes"),
        ("described/", "metadata:described"),
        ("many/", "metadata:many"),
        ("a.csv", "csv:a.csv"),
        ("a.jsonl", "jsonl:a.jsonl"),
        ("a.parquet", "parquet:a.parquet"),
        ("coco.json", "coco:coco.json"),
        ("mref", "mref"),  # a generator, even beside a folder of its name
        ("mref/", "folder:mref"),
        ("csv:a.csv", "csv:a.csv"),
    ],
)
def test_each_kind_has_its_reader(place: Path, path: str, found: str) -> None:
    (place / "mref" / "cat").mkdir()
    assert with_reader(path, NAMES) == found


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("gone.csv", "no such file or folder; data is a name"),
        ("mrf", "no such file or folder; did you mean 'mref'"),
        ("flat/", "no folders of classes.*metadata.csv"),
        ("other.json", "not a kind of file"),
    ],
)
def test_what_is_no_data_says_what_would_be(place: Path, path: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        with_reader(path, NAMES)
