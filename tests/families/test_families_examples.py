"""Examples of a split for sheets and reports: the picture, the question, the truth in words, and where it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import saccade
from saccade.commands.door import app
from saccade.families.caption.data import CaptionDataConfig, CaptionScenes
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.families.question.tables import TableData, TableDataConfig


def table(folder: Path, text: str) -> str:
    for number in range(3):
        Image.new("RGB", (20, 10), (80 * number, 0, 0)).save(folder / f"{number}.png")
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return f"csv:{folder / 't.csv'}"


def test_scenes_of_attributes_ask_about_each_scene_once() -> None:
    data = SceneData(SceneDataConfig(glyphs="pack"), "test")
    found = data.shown(3)
    batch = data.take(data.one_per_scene(3))
    assert [each.question for each in found] == [data.queries[query] for query in batch.query.tolist()]
    assert [each.truth for each in found] == [data.answers[label] for label in batch.label.tolist()]
    assert found[0].caption == f"{found[0].question} → {found[0].truth}"
    for each, image, mask in zip(found, batch.images, batch.evidence()):
        assert torch.equal(each.source, image)
        assert len(each.masks) == 1
        assert torch.equal(each.masks[0], mask)


def test_questions_without_evidence_have_no_masks(tmp_path: Path) -> None:
    rows = "image,query,label,split,box\n0.png,top,red,train,\n0.png,side,blue,train,\n1.png,side,red,train,2 2 8 6\n"
    data = TableData(TableDataConfig(table(tmp_path, rows), size=(10, 20)), "train")
    found = data.shown(9)
    assert [each.caption for each in found] == ["top → red", "side → red"]
    assert [len(each.masks) for each in found] == [0, 1]
    assert int(found[1].masks[0].sum()) == 6 * 4


def test_captioned_scenes_show_every_digit_that_is_named() -> None:
    data = CaptionScenes(CaptionDataConfig(glyphs="pack"), "test")
    found = data.shown(6)
    assert [each.truth for each in found] == [data.references(number)[0] for number in range(6)]
    assert [len(each.masks) for each in found] == [2 if len(each.truth.split()) > 4 else 1 for each in found]
    assert {len(each.masks) for each in found} == {1, 2}


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
