"""A run that goes on with other data than it began with: refused by the name of what changed, or accepted and said."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import saccade
from question_tables import write_table
from saccade.errors import DataError

QUESTIONS = (
    "data.size=[48,48]", "batch_size=16", "model.config.hidden=4", "model.config.channels=4", "model.config.depth=2",
    "phases.0.epochs=1", "phases.0.schedule.warmup=0",
)  # fmt: skip
Rows = list[dict[str, str]]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))


def begun(out: Path, recipe: str, table: Path, overrides: tuple[str, ...]) -> Path:
    """A run that the clock stopped after its first step."""
    options = {"device": "cpu", "quiet": True, "max_minutes": 1e-9, "overrides": overrides}
    assert saccade.train(recipe, data=f"csv:{table}", out=out, **options).step == 1
    return out


def go_on(out: Path, **options: bool) -> str:
    return saccade.train(out=out, resume=True, device="cpu", quiet=True, **options).stopped


def rewrite(table: Path, change: Callable[[Rows], Rows]) -> None:
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(change(rows))


def repaint(picture: Path) -> None:
    """Another picture in its place, of as many bytes, at the same time."""
    size, times = picture.stat().st_size, (picture.stat().st_atime_ns, picture.stat().st_mtime_ns)
    pixels = np.array(Image.open(picture))
    Image.fromarray(255 - pixels).save(picture)
    content = picture.read_bytes()
    assert len(content) <= size, "choose a picture that is packed as well"
    picture.write_bytes(content + b"\0" * (size - len(content)))
    os.utime(picture, ns=times)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "files")


def test_rotated_labels_are_refused(tmp_path: Path, table: Path) -> None:
    out = begun(tmp_path / "r", "attributes", table, QUESTIONS)
    rewrite(table, lambda rows: [{**row, "label": rows[place - 1]["label"]} for place, row in enumerate(rows)])
    with pytest.raises(DataError, match="rows"):
        go_on(out)


def test_what_is_not_learned_from_may_change(tmp_path: Path, table: Path) -> None:
    """Test rows, other columns, times of files, and where the folder of the table lies."""
    out = begun(tmp_path / "r", "attributes", table, QUESTIONS)
    rewrite(table, lambda rows: [{**row, "box": ""} for row in rows if row["image"] != "53.png"])
    os.utime(table.parent / "00.png", ns=(5, 5))
    (tmp_path / "moved").mkdir()
    moved = table.parent.rename(tmp_path / "moved" / "files") / "table.csv"
    settings = out / "config.yaml"
    settings.write_text(settings.read_text(encoding="utf-8").replace(str(table), str(moved)))
    assert go_on(out) == "finished"


def test_a_picture_that_was_replaced_by_another_of_its_size_is_refused(tmp_path: Path, table: Path) -> None:
    out = begun(tmp_path / "r", "attributes", table, QUESTIONS)
    repaint(table.parent / "07.png")
    with pytest.raises(DataError, match="pictures"):
        go_on(out)
