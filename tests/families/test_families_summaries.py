"""The summary of a table names what looks wrong with it: on the command line, and at the beginning of a run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import saccade
from saccade.commands.door import app

PICTURES = 12


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pictures 0 to 11."""
    numbers = np.random.default_rng(0)
    for number in range(PICTURES):
        blobs = Image.fromarray(numbers.integers(0, 256, (6, 6, 3), np.uint8)).resize(
            (48, 48), Image.Resampling.BICUBIC
        )
        blobs.save(tmp_path / f"{number}.png")
    return tmp_path


def _rows(**values: object) -> list[dict[str, object]]:
    """A row for each picture: 0 to 7 in train, 8 and 9 in val, 10 and 11 in test."""
    splits = {number: "train" if number < 8 else "val" if number < 10 else "test" for number in range(PICTURES)}
    return [{"image": f"{n}.png", "split": split, **values} for n, split in splits.items()]


def _table(folder: Path, rows: list[dict[str, object]]) -> str:
    (folder / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return f"jsonl:{folder / 't.jsonl'}"


def _shown(data: str, folder: Path) -> str:
    result = CliRunner().invoke(app, ["data", "show", data, "--split", "train", "--out", str(folder / "sheet.png")])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())  # a narrow terminal breaks lines


def test_questions(folder: Path) -> None:
    rows = _rows(query="how many", label="1")
    rows[2]["label"], rows[5]["label"] = "1.0", "2"
    rows.append({**rows[4], "label": "2"})
    data = _table(folder, rows)
    said = _shown(data, folder)
    assert (
        "doubtful: 1 question has contradictory labels in different rows (first 4.png, 'how many': '1' and '2')" in said
    )
    assert "doubtful: 2 labels differ in spelling alone and count as different ones (first '1' and '1.0')" in said
    assert said.count("doubtful") == 2


def test_a_run_says_it_before_its_first_step(folder: Path, tmp_path: Path) -> None:
    rows = _rows(query="how many", label="1")
    rows[2]["label"] = "1.0"
    tiny = (
        "data.size=[48,48]",
        "batch_size=8",
        "model.config.hidden=4",
        "model.config.channels=4",
        "phases.0.epochs=1",
    )
    data = _table(folder, rows)
    saccade.train(
        "attributes",
        data=data,
        out=tmp_path / "run",
        overrides=[*tiny, "model.config.depth=2"],
        device="cpu",
        quiet=True,
    )
    lines = [line.partition(" ")[2] for line in (tmp_path / "run" / "log.txt").read_text("utf-8").splitlines()]
    assert lines[0].endswith("1 query, 2 answers; an epoch is 1 step")
    assert [line.startswith("doubtful: ") for line in lines[:3]] == [False, True, False]


def test_a_table_without_doubts_has_one_line(folder: Path) -> None:
    assert "doubtful" not in _shown(_table(folder, _rows(query="how many", label="1")), folder)
