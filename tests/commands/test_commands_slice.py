"""From a recipe to a page: train, evaluate, load, look, report; by Python functions and by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import saccade
from saccade.commands.door import app
from saccade.families.question.scenes.data import SceneData, SceneDataConfig
from tiny_runs import FRESH, TINY


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A generated picture and a digit that is in it."""
    batch = SceneData(SceneDataConfig(glyphs="pack"), "test").take(torch.arange(1))
    pixels = (batch.images[0] * 255).byte().permute(1, 2, 0).contiguous().numpy()  # (H,W,3)
    path = tmp_path_factory.mktemp("scene") / "scene.png"
    Image.fromarray(pixels).save(path)
    return path, int(batch.query[0])


def test_what_is_loaded_answers_as_what_was_trained(run: Path) -> None:
    """The predictor's preprocessing of a 100×100 scene changes nothing: same answers as the scored model's."""
    batch = SceneData(SceneDataConfig(glyphs="pack"), "test").take(torch.arange(10))
    predictor = saccade.load(run, "cpu")
    logits = predictor.model.forward_raw(batch.images, batch.query)["logits"]
    for image, query, row in zip(batch.images, batch.query, logits):
        seen = predictor.look(image, ask=int(query))
        assert seen.answer == SceneData.answers[int(row.argmax())]
        assert seen.confidence == pytest.approx(float(row.softmax(-1).max()), abs=1e-5)


@pytest.mark.slow
def test_by_command_line(scene: tuple[Path, int], tmp_path: Path) -> None:
    """In a process of its own the splits have their full length: two thousand validation scenes."""
    path, digit = scene
    out = tmp_path / "run"
    overrides = [part for override in (*TINY, *FRESH, "phases.0.validate_every=6") for part in ("--set", override)]
    command = [sys.executable, "-m", "saccade", "train", "soft-mref", "--device", "cpu", "--out", str(out), *overrides]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert "saccade evaluate" in done.stderr

    def verb(*args: object) -> str:
        result = CliRunner().invoke(app, [str(arg) for arg in args])
        assert result.exit_code == 0, result.output
        return result.stdout

    found = json.loads(verb("evaluate", out, "--json", "--limit", 20, "--device", "cpu"))
    assert (found["n"], found["data"], found["glyphs"]) == (20, "mref", "pack-test-600")
    verb("look", path, "--model", out, "--ask", digit, "--out", tmp_path / "looks", "--device", "cpu")
    assert {file.suffix for file in (tmp_path / "looks").iterdir()} == {".png", ".json", ".safetensors"}
    for source, page in ((out, "run.html"), (tmp_path / "looks", "looks.html")):
        verb("report", source, "--out", tmp_path / page)
        assert (tmp_path / page).read_text().startswith("<!doctype html>")
