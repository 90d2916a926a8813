"""metadata.csv and metadata.jsonl beside pictures, as the datasets library has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from saccade.data.tables.labelled import LabelTableOptions

from saccade.data.tables.metadata import read_label_metadata
from saccade.errors import DataError
from saccade.families import family_of_data


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
    table = read_label_metadata(tmp_path, LabelTableOptions())
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
    table = read_label_metadata(tmp_path, LabelTableOptions())
    assert {(row.image.parent.name, row.split) for row in table.rows} == {
        ("train", "train"), ("validation", "val"), ("test", "test")
    }  # fmt: skip
    assert len(table.skipped) == 3
    assert family_of_data(f"metadata:{tmp_path}").name == "question"  # it has queries


def test_questions_are_read_from_it_too(tmp_path: Path) -> None:
    from saccade.families.question.readers import read_questions

    pictures(tmp_path, "a.png")
    (tmp_path / "metadata.csv").write_text("file_name,query,label\na.png,crown,red\n")
    assert read_questions(f"metadata:{tmp_path}").rows[0].query == "crown"


def test_a_folder_without_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"neither metadata.csv nor metadata.jsonl"):
        read_label_metadata(tmp_path, LabelTableOptions())
