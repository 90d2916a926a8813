"""Pictures in two splits: refused where a table says so, named where they are copies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from saccade.families.multiset.table import MultisetTable, MultisetTableOptions, read_multiset_csv
from saccade.families.question.table import QuestionTable
from saccade.families.question.tables.rows import TableOptions, read_csv

from saccade.data.tables.doubts import warn_of_copies
from saccade.errors import DataError
from saccade.families.caption.table import CaptionOptions, CaptionTable, read_caption_csv


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "abcdefg":
        (tmp_path / f"{name}.png").write_bytes(f"picture {name}".encode())
    return tmp_path


def table(folder: Path, *rows: str, columns: str = "image,query,label,split") -> QuestionTable:
    (folder / "t.csv").write_text("\n".join([columns, *rows]), encoding="utf-8")
    return read_csv(folder / "t.csv", TableOptions())


def captions(folder: Path, *rows: str) -> CaptionTable:
    (folder / "t.csv").write_text("\n".join(["image,caption,split,group", *rows]), encoding="utf-8")
    return read_caption_csv(folder / "t.csv", CaptionOptions())


def multisets(folder: Path, *rows: str) -> MultisetTable:
    (folder / "t.csv").write_text("\n".join(["image,labels,split,group", *rows]), encoding="utf-8")
    return read_multiset_csv(folder / "t.csv", MultisetTableOptions())


def test_a_picture_in_two_splits_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(DataError) as told:
        table(folder, "a.png,q,x,train", "b.png,q,y,train", "./a.png,r,x,test", "a.png,r,x,val", "b.png,r,y,val")
    text = str(told.value)
    assert "2 pictures are in more than one split" in text
    assert "a.png (train, test, val); b.png (train, val); give each picture one split" in text


def test_a_group_in_two_splits_is_refused_by_name(folder: Path) -> None:
    columns = "image,query,label,split,group"
    with pytest.raises(DataError, match=r"1 group is in more than one split.*: ann \(train, val\); give each group"):
        table(folder, "a.png,q,x,train,ann", "b.png,q,y,val,ann", "c.png,q,y,train,bob", columns=columns)


@pytest.mark.parametrize("read", [captions, multisets])
def test_tables_of_captions_and_multisets_are_held_to_the_same(
    folder: Path, read: Callable[..., CaptionTable | MultisetTable]
) -> None:
    with pytest.raises(DataError, match=r"1 picture is in more than one split.*: a\.png \(train, test\); give each"):
        read(folder, "a.png,one,train,", "a.png,two,test,")
    with pytest.raises(DataError, match=r"1 group is in more than one split.*: ann \(train, val\); give each group"):
        read(folder, "a.png,one,train,ann", "b.png,one,val,ann")
    (folder / "b.png").write_bytes((folder / "a.png").read_bytes())
    with pytest.warns(UserWarning, match=r"byte for byte, .* b\.png \(val\) = a\.png \(train\)"):
        assert len(read(folder, "a.png,one,train,ann", "b.png,one,val,bob").rows) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(folder, "a.png,one,train,ann", "c.png,one,val,bob").rows) == 2


def test_copies_in_two_splits_are_named(folder: Path) -> None:
    """g has the length of the others and other bytes; b is a copy within its split, which is nobody's leak."""
    for copy in ("b.png", "c.png"):
        (folder / copy).write_bytes((folder / "a.png").read_bytes())
    with pytest.warns(UserWarning, match="in another split") as told:
        found = table(folder, "a.png,q,x,train", "b.png,q,x,train", "c.png,q,x,test", "g.png,q,x,test")
    assert len(found.rows) == 4
    (text,) = [str(each.message) for each in told]
    assert "1 picture is the same, byte for byte, as one in another split" in text
    assert "c.png (test) = a.png (train); keep one of each" in text


def test_copies_are_found_where_a_hash_decides_the_split(folder: Path) -> None:
    for name in "bcdefg":
        (folder / f"{name}.png").write_bytes((folder / "a.png").read_bytes())
    with pytest.warns(UserWarning, match="byte for byte"):
        table(folder, *(f"{name}.png,q,x" for name in "abcdefg"), columns="image,query,label")


def test_a_clean_table_is_read_in_silence(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(table(folder, "a.png,q,x,train", "a.png,r,x,train", "b.png,q,x,test").rows) == 3


def test_a_file_that_cannot_be_read_is_no_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Path] = []

    def refused(path: Path) -> bytes:
        tried.append(path)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_copies("csv:t", {folder / "a.png": "train", folder / "b.png": "test"})
    assert set(tried) == {folder / "a.png", folder / "b.png"}
