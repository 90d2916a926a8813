"""Parquet tables with pictures inside, as the datasets library writes them."""

from __future__ import annotations

import json
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from saccade.data.tables.labelled import LabelTable, LabelTableOptions

from saccade.data.tables.metadata import read_label_parquet
from saccade.errors import DataError, MissingExtraError
from saccade.families import family_of_data


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))


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
    importlib_parquet = pytest.importorskip("pyarrow.parquet")
    importlib_parquet.write_table(table, path)
    return path


def read(path: Path) -> LabelTable:
    return read_label_parquet(path, LabelTableOptions())


def test_pictures_inside_are_written_out_and_classes_named(tmp_path: Path) -> None:
    images = [{"bytes": png(10), "path": "a.png"}, {"bytes": png(20), "path": None}, {"bytes": b"no", "path": None}]
    path = write(
        tmp_path / "train-00000-of-00001.parquet",
        {"image": images, "label": [1, 0, 0]},
        {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}},
    )
    table = read(path)
    assert [(row.label, row.split) for row in table.rows] == [("dog", "train"), ("cat", "train")]
    assert [Image.open(row.image).getpixel((0, 0)) for row in table.rows] == [(10, 0, 0), (20, 0, 0)]
    assert table.skipped == ("bytes that are no picture: row 3",)
    assert family_of_data(f"parquet:{path}").name == "classify"


def test_a_folder_of_files_has_its_splits_by_name(tmp_path: Path) -> None:
    write(tmp_path / "data" / "train-0.parquet", {"image": [png(1)], "label": ["x"]})
    write(tmp_path / "data" / "test-0.parquet", {"image": [png(2)], "label": ["x"]})
    assert {row.split for row in read(tmp_path / "data").rows} == {"train", "test"}


def test_a_picture_of_the_cache_that_was_replaced_is_not_used(tmp_path: Path) -> None:
    path = write(tmp_path / "train.parquet", {"image": [png(10)], "label": ["x"]})
    picture = read(path).rows[0].image
    picture.write_bytes(png(99))
    assert read(path).rows[0].image.read_bytes() == png(10)


def test_paths_are_found_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(1))
    table = read(write(tmp_path / "t.parquet", {"file_name": ["a.png", "gone.png"], "label": ["x", "x"]}))
    assert [row.image for row in table.rows] == [tmp_path / "a.png"]
    assert "no such picture" in table.skipped[0]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column image; found label"):
        read(write(tmp_path / "t.parquet", {"label": ["x"]}))
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"bad.parquet: cannot be read"):
        read(tmp_path / "bad.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no .parquet file in it"):
        read(tmp_path / "empty")


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'saccade-attention\[tables\]'"):
        read(tmp_path / "t.parquet")
