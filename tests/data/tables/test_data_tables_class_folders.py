"""Folders by class: with and without splits, and everything in them that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet_tables import read_quietly
from saccade.data import Table
from saccade.errors import DataError


def write(top: Path, **files: str) -> Path:
    """``class__name=content``: files that have the name of a picture; nobody decodes them here."""
    for key, content in files.items():
        path = top / Path(*key.split("__")).with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return top


def read(path: Path, *, strict: bool = False) -> Table:
    return read_quietly(f"folder:{path}", "classify", strict=strict)


def many(top: Path, classes: tuple[str, ...] = ("cat", "dog"), each: int = 40) -> Path:
    return write(top, **{f"{name}__{number}": f"{name}{number}" for name in classes for number in range(each)})


def test_without_splits_a_hash_of_the_path_says_them(tmp_path: Path) -> None:
    table = read(many(tmp_path))
    assert table.answers == ("cat", "dog")
    assert sum(map(table.count, ("train", "val", "test"))) == 80
    assert 45 < table.count("train") < 67
    assert min(table.count("val"), table.count("test")) > 3
    assert {row.label == row.image.parent.name for row in table.rows} == {True}


def test_splits_above_the_classes_are_taken_and_a_part_of_train_is_val_where_there_is_none(tmp_path: Path) -> None:
    table = read(write(tmp_path / "a", train__cat__1="a", train__dog__1="b", validation__cat__2="c", test__dog__2="d"))
    assert {(row.label, row.split) for row in table.rows} == {
        ("cat", "train"), ("dog", "train"), ("cat", "val"), ("dog", "test")
    }  # fmt: skip
    many(tmp_path / "b" / "train")
    table = read(write(tmp_path / "b", test__cat__x="x", test__dog__y="y"))
    assert table.count("test") == 2
    assert 3 < table.count("val") < 25
    assert table.count("train") == 80 - table.count("val")


def test_what_cannot_be_used_is_counted_and_named(tmp_path: Path) -> None:
    top = write(many(tmp_path), cat__day1__more="a", **{"cat__.thumb": "t", ".git__x": "y"})
    (top / "empty").mkdir()
    (top / "cat" / "notes.txt").write_text("x")
    table = read(top)
    assert "cat" in {row.label for row in table.rows if row.image.parent.name == "day1"}
    assert len(table.rows) == 81  # hidden files do not count
    assert "class without pictures: empty" in table.skipped
    assert "no picture by its name: cat/notes.txt" in table.skipped
    with pytest.raises(DataError, match="2 pictures"):
        read(top, strict=True)


def test_the_same_picture_in_two_classes_is_left_out_of_both(tmp_path: Path) -> None:
    table = read(write(many(tmp_path), cat__same="twin", dog__other="twin", dog__third="alone!"))
    assert [entry for entry in table.skipped if entry.startswith("same picture in two classes")] == [
        "same picture in two classes: cat/same.png = dog/other.png",
        "same picture in two classes: dog/other.png = cat/same.png",
    ]
    assert not {"same.png", "other.png"} & {row.image.name for row in table.rows}
    assert "third.png" in {row.image.name for row in table.rows}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train__cat__1": "a", "dog__1": "b"}, "dog beside train"),
        ({"1": "a"}, "CLASS/PICTURE"),
        ({"empty__.hidden": "a"}, "class without pictures"),
    ],
)
def test_folders_that_make_no_table(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, **files))


def test_a_link_that_leads_back_is_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Followed, it would make every picture one of two classes."""
    many(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "cat" / "deep").symlink_to(tmp_path / "cat")
    table = read(tmp_path)
    assert len(table.rows) == 80
    assert table.skipped == ("link that leads back: loop",)
