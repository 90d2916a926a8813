"""Tables that come with their pictures, as the datasets library has them: metadata beside them, and Parquet."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from quiet_tables import read_quietly
from saccade.errors import DataError
from saccade.families import family_of_data


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


def write(path: Path, columns: dict[str, list[Any]], features: dict[str, Any] | None = None) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(columns)
    if features:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


def test_pictures_inside_are_written_out_and_classes_named(tmp_path: Path) -> None:
    images = [{"bytes": png(10), "path": "a.png"}, {"bytes": png(20), "path": None}, {"bytes": b"no", "path": None}]
    path = write(
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
    write(tmp_path / "data" / "train-0.parquet", {"image": [png(1), png(2)], "labels": [["x", "x"], []]})
    write(tmp_path / "data" / "test-0.parquet", {"image": [png(3)], "labels": [["x"]]})
    rows = read_quietly(f"parquet:{tmp_path / 'data'}", "multiset").rows
    assert sorted((row.split, row.labels) for row in rows) == [("test", ("x",)), ("train", ()), ("train", ("x", "x"))]
    assert family_of_data(f"parquet:{tmp_path / 'data'}").name == "multiset"


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", {"label": ["x"]})
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
