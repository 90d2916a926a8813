"""Annotations of COCO: boxes, polygons and run lengths against masks by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saccade.data import Table
from saccade.errors import DataError
from small_tables import read_quietly

SQUARE = [[1, 1, 4, 1, 4, 3, 1, 3]]
"""Down the columns: the second column has its rows 1 and 2."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))


def annotated(folder: Path, *annotations: dict[str, Any], size: tuple[int, int] = (4, 6)) -> Path:
    """Pictures 1 to 3 of ``size`` (H, W), each with the annotations that name it."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    images = []
    for number in (1, 2, 3):
        Image.new("RGB", (size[1], size[0])).save(folder / "images" / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png", "height": size[0], "width": size[1]})
    categories = [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}]
    path = folder / "instances.json"
    path.write_text(json.dumps({"images": images, "categories": categories, "annotations": list(annotations)}))
    return path


def read(path: Path) -> Table:
    return read_quietly(f"coco:{path}", "classify")


def mask_of(table: Table) -> np.ndarray:
    return np.asarray(Image.open(table.rows[0].mask).convert("L")) > 0


def test_a_picture_of_one_category_is_a_row(tmp_path: Path) -> None:
    table = read(
        annotated(
            tmp_path,
            {"image_id": 1, "category_id": 7, "bbox": [1, 1, 2, 1]},
            {"image_id": 1, "category_id": 7, "bbox": [3, 0, 2, 4]},
            {"image_id": 2, "category_id": 7, "bbox": [0, 0, 1, 1]},
            {"image_id": 2, "category_id": 9, "bbox": [0, 0, 1, 1]},
        )
    )
    (row,) = table.rows
    assert (row.image, row.label, row.box, row.mask) == (tmp_path / "images" / "1.png", "cat", (1, 0, 5, 4), None)
    assert sorted(table.skipped) == ["no annotation: 3.png", "several categories: 2.png"]


def test_polygons_become_a_mask_in_the_cache_which_is_drawn_again_if_it_was_replaced(tmp_path: Path) -> None:
    path = annotated(tmp_path, {"image_id": 1, "category_id": 7, "segmentation": SQUARE})
    marked = mask_of(read(path))
    assert marked.shape == (4, 6)
    assert marked[1:3, 1:4].all()
    assert not marked[0].any()
    assert not marked[:, 5].any()
    mask = read(path).rows[0].mask
    assert mask.is_relative_to(tmp_path / "home")
    before = mask.read_bytes()
    mask.write_bytes(b"something else")
    assert read(path).rows[0].mask == mask
    assert mask.read_bytes() == before


def encoded(lengths: list[int]) -> str:
    """COCO's string, written after its definition."""
    text = ""
    for at, length in enumerate(lengths):
        value = length - lengths[at - 2] if at > 2 else length
        more = True
        while more:
            part = value & 0x1F
            value >>= 5
            more = value != -1 if part & 0x10 else value != 0
            text += chr((part | 0x20 if more else part) + 48)
    return text


@pytest.mark.parametrize("as_text", [False, True])
def test_run_lengths_as_numbers_and_as_text(tmp_path: Path, as_text: bool) -> None:
    """Down the columns; as text, the lengths from the fourth on are differences, some of them negative."""
    lengths = [100, 700, 3, 40, 900, 1, 656]
    runs = {"size": [60, 40], "counts": encoded(lengths) if as_text else lengths}
    path = annotated(tmp_path, {"image_id": 1, "category_id": 7, "segmentation": runs}, size=(60, 40))
    down = np.concatenate([np.full(length, at % 2) for at, length in enumerate(lengths)])
    assert np.array_equal(mask_of(read(path)), down.reshape(40, 60).T > 0)


@pytest.mark.parametrize(
    ("segmentation", "why"),
    [
        ({"size": [4, 6], "counts": [5, 2]}, "unreadable segmentation: 1.png, runs that do not add up to 4 × 6"),
        ({"size": [10**6, 10**6], "counts": [10**12]}, "unreadable segmentation: 1.png, run lengths of"),
        ({"size": [4, 6], "counts": [2**62, 2**62, 2**62, 2**62 + 24]}, "unreadable segmentation: 1.png"),
    ],
)
def test_a_segmentation_that_is_none_is_counted(tmp_path: Path, segmentation: object, why: str) -> None:
    good = {"image_id": 2, "category_id": 9, "bbox": [0, 0, 1, 1]}
    table = read(annotated(tmp_path, {"image_id": 1, "category_id": 7, "segmentation": segmentation}, good))
    assert len(table.rows) == 1
    assert any(each.startswith(why) for each in table.skipped)


@pytest.mark.parametrize("text", ["{", "[]", '{"images": [{"id": 1e999}]}'])
def test_a_file_that_is_no_coco_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DataError, match=r"x\.json"):
        read(tmp_path / "x.json")
