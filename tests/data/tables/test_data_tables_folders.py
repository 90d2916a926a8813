"""Folders and files of one's own: by class, with metadata beside them, Parquet; and which reader a path alone means."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from saccade.data import Table
from saccade.data.tables.readers import with_reader
from saccade.errors import DataError
from saccade.families import family_of_data
from small_tables import read_quietly


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


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))


def pictures(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(f"{folder.name}{name}")
    return folder


def test_one_table_beside_the_pictures(tmp_path: Path) -> None:
    pictures(tmp_path, "a.png", "b.png")
    (tmp_path / "metadata.csv").write_text(
        "file_name;label;split\na.png;cat;train\nb.png;cat;test\ngone.png;cat;test\n"
    )
    table = read_quietly(f"metadata:{tmp_path}")
    assert [(row.image.name, row.label, row.split) for row in table.rows] == [
        ("a.png", "cat", "train"), ("b.png", "cat", "test")
    ]  # fmt: skip
    assert [each.partition(":")[0] for each in table.skipped] == [f"no such picture in {tmp_path}"]
    assert table.name == f"metadata:{tmp_path}"
    assert family_of_data(f"metadata:{tmp_path}").name == "classify"


def test_a_table_for_each_split(tmp_path: Path) -> None:
    for split, name in (("train", "a.png"), ("validation", "a.png"), ("test", "a.png")):
        pictures(tmp_path / split, name)
        line = {"file_name": name, "label": "cat", "query": "what?"}
        (tmp_path / split / "metadata.jsonl").write_text(json.dumps(line) + "\n[]\n")
    table = read_quietly(f"metadata:{tmp_path}")
    assert {(row.image.parent.name, row.split) for row in table.rows} == {
        ("train", "train"), ("validation", "val"), ("test", "test")
    }  # fmt: skip
    assert len(table.skipped) == 3
    assert family_of_data(f"metadata:{tmp_path}").name == "question"  # it has queries


def png(shade: int) -> bytes:
    stream = BytesIO()
    Image.new("RGB", (3, 2), (shade, 0, 0)).save(stream, format="PNG")
    return stream.getvalue()


def write_parquet(path: Path, columns: dict[str, list[Any]], features: dict[str, Any] | None = None) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(columns)
    if features:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


def test_pictures_inside_are_written_out_and_classes_named(tmp_path: Path) -> None:
    images = [{"bytes": png(10), "path": "a.png"}, {"bytes": png(20), "path": None}, {"bytes": b"no", "path": None}]
    path = write_parquet(
        tmp_path / "train-00000-of-00001.parquet",
        {"image": images, "label": [1, 0, 0]},
        {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}},
    )
    table = read_quietly(f"parquet:{path}")
    assert [(row.label, row.split) for row in table.rows] == [("dog", "train"), ("cat", "train")]
    assert [Image.open(row.image).getpixel((0, 0)) for row in table.rows] == [(10, 0, 0), (20, 0, 0)]
    assert table.skipped == ("bytes that are no picture: row 3",)
    table.rows[0].image.write_bytes(png(99))  # replaced in the cache
    assert read_quietly(f"parquet:{path}").rows[0].image.read_bytes() == png(10)
    assert family_of_data(f"parquet:{path}").name == "classify"


def test_lists_inside_are_labels_and_files_of_a_folder_have_their_splits_by_name(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data" / "train-0.parquet", {"image": [png(1), png(2)], "labels": [["x", "x"], []]})
    write_parquet(tmp_path / "data" / "test-0.parquet", {"image": [png(3)], "labels": [["x"]]})
    rows = read_quietly(f"parquet:{tmp_path / 'data'}", "multiset").rows
    assert sorted((row.split, row.labels) for row in rows) == [("test", ("x",)), ("train", ()), ("train", ("x", "x"))]
    assert family_of_data(f"parquet:{tmp_path / 'data'}").name == "multiset"


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    write_parquet(tmp_path / "t.parquet", {"label": ["x"]})
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    (tmp_path / "empty").mkdir()
    for reference, message in [
        ("parquet:{}/t.parquet", "no column image; found label"),
        ("parquet:{}/bad.parquet", r"bad\.parquet"),
        ("parquet:{}/empty", r"empty: no \.parquet"),
        ("metadata:{}/empty", r"empty: .*metadata\.csv"),
    ]:
        with pytest.raises(DataError, match=message):
            read_quietly(reference.format(tmp_path))


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
        ("many/", "metadata:many"),
        ("a.csv", "csv:a.csv"),
        ("a.parquet", "parquet:a.parquet"),
        ("coco.json", "coco:coco.json"),
        ("mref", "mref"),  # a generator, even beside a folder of its name
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
