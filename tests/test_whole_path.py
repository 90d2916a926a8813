"""An engineer with photographs in class folders: a verdict, a model, answers about new pictures, a file to deploy.

Every step is a command as it is typed; the next step uses what the one before left.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from labelled_files import COLOURS, class_folders, picture
from saccade.commands.door import app

# What makes ``saccade train attributes-head`` a matter of seconds; val has too few pictures to choose by.
SMALL_HEAD = (
    *("--backbone", "compact", "--set", "model.config.through=layer2", "--set", "model.config.pretrained=false"),
    *("--set", "data.size=[32,32]", "--steps", "60", "--batch-size", "16"),
    *("--set", "phases.0.select=null", "--set", "phases.0.restore_best=false", "--set", "phases.0.patience=null"),
)


def saccade(*words: str) -> str:
    """What a command prints on both streams, in one line; it must end well."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_from_class_folders_to_a_file_that_runs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra 'export'")
    here = tmp_path
    monkeypatch.setenv("SACCADE_HOME", str(here / "cache"))
    monkeypatch.chdir(here)
    class_folders(here / "photos", each=8)
    (here / "new").mkdir()
    for name, colour in COLOURS.items():
        picture(colour, 99).save(here / "new" / f"is-{name}.png")

    told = saccade(
        *("probe", "--data", "photos", "--out", "probed", "--heads", "soft", "--backbone", "compact"),
        *("--through", "layer2", "--size", "32", "--splits", "3", "--seeds", "1", "--steps", "20"),
    )
    assert "soft attention" in told
    assert "the commonest class alone is 33.3 %" in told
    assert "Confusion matrix" in (here / "probed" / "report.html").read_text("utf-8")

    told = saccade("train", "attributes-head", "--data", "photos", "--out", "trained", *SMALL_HEAD)
    assert "folder:" in told

    for model in ("probed", "trained"):  # neither needs a question
        saccade("look", "new", "--model", model, "--out", f"looks-{model}")
        with (here / f"looks-{model}" / "looks.csv").open(newline="", encoding="utf-8") as file:
            answers = {Path(row["source"]).stem: row["answer"] for row in csv.DictReader(file)}
        assert answers == {f"is-{name}": name for name in COLOURS}, model
        assert [*(here / f"looks-{model}").glob("is-red*.png")]

    assert "cells.weights" in saccade("export", "probed", "--out", "elsewhere")
    sidecar = json.loads((here / "elsewhere" / "model.json").read_text("utf-8"))
    session = onnxruntime.InferenceSession(here / "elsewhere" / "model.onnx", providers=["CPUExecutionProvider"])
    pixels = np.asarray(picture(COLOURS["blue"], 98, (32, 32)), np.float32).transpose(2, 0, 1) / 255  # (3,H,W)
    (answer,) = session.run(["answer"], {"images": pixels[None]})
    assert sidecar["answers"][int(answer[0])] == "blue"
