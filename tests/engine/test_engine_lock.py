"""Two trainings do not share a folder; a run that was killed while its folder was made can be started either way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from engine_fakes import Crash, TinyTask, read_metrics, tiny_recipe, weights

from saccade.engine import fit
from saccade.engine.run_folder import LOCK, RunFolder
from saccade.errors import CheckpointError, OutputError
from saccade.files import growing

QUIET = {"device": "cpu", "progress": "quiet"}


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_lock_of_a_killed_run_is_taken_over(tmp_path):
    out = tmp_path / "run"
    recipe = tiny_recipe(checkpoint_every=2)
    task = TinyTask()
    task.crash_at = 8
    with pytest.raises(Crash):
        fit(task, recipe, out, **QUIET)
    (out / LOCK).touch()  # as SIGKILL leaves it
    with pytest.raises(OutputError, match="resume"):
        fit(TinyTask(), recipe, out, **QUIET)
    (out / LOCK).touch()
    assert fit(TinyTask(), recipe, out, resume=True, **QUIET).stopped == "finished"
    assert not (out / LOCK).exists()


def _left_by_a_kill(out: Path, state: str) -> None:
    """What a SIGKILL leaves at moments between the making of the folder and the first checkpoint."""
    out.mkdir()
    (out / LOCK).write_text("")
    if state == "draft of the recipe":
        (out / ".config.yaml.abcd.saccade-part").write_text("recip")
        return
    RunFolder(out).create(tiny_recipe(), {})
    assert (out / LOCK).exists()
    if state == "draft of the first checkpoint":
        (out / "data.json").write_text(
            json.dumps({"schema_version": 1, "accepted": [], "parts": {"settings": [["seed", "0"]]}})
        )
        (out / "log.txt").write_text("begun\n")
        draft = out / "checkpoints" / ".step-00000000.abcd.saccade-part"
        draft.mkdir(parents=True)
        (draft / "state.json").write_text("{")


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("state", ["draft of the recipe", "recipe alone", "draft of the first checkpoint"])
def test_a_kill_while_the_folder_is_made_is_no_dead_end(tmp_path, state, resume):
    out, alone = tmp_path / "run", tmp_path / "alone"
    _left_by_a_kill(out, state)
    task, undisturbed = TinyTask(), TinyTask()
    fit(undisturbed, tiny_recipe(), alone, **QUIET)
    assert fit(task, tiny_recipe(), out, resume=resume, **QUIET).stopped == "finished"
    assert all(bool((value == weights(undisturbed)[name]).all()) for name, value in weights(task).items())
    assert [(each["step"], each["values"]) for each in read_metrics(out)] == [
        (each["step"], each["values"]) for each in read_metrics(alone)
    ]
    assert _names(out) == _names(alone)
    assert _names(out / "checkpoints") == _names(alone / "checkpoints")
    assert ("nothing to resume" in (out / "log.txt").read_text()) == resume


def test_a_folder_of_somebody_else_gets_no_lock_and_keeps_what_it_has(tmp_path):
    (tmp_path / "log.txt").write_text("mine")
    with pytest.raises(OutputError, match="not empty"):
        fit(TinyTask(), tiny_recipe(), tmp_path, **QUIET)
    with pytest.raises(CheckpointError, match="not a run folder"):
        fit(TinyTask(), tiny_recipe(), tmp_path, resume=True, **QUIET)
    assert _names(tmp_path) == {"log.txt"}


def test_a_model_whose_writer_was_killed_in_the_swap_is_put_back(tmp_path):
    out = tmp_path / "run"
    fit(TinyTask(), tiny_recipe(), out, **QUIET)
    os.replace(out / "model", out / ".model.abcd.saccade-old")
    result = fit(TinyTask(), tiny_recipe(), out, resume=True, **QUIET)
    assert result.model == out / "model"
    assert _names(out / "model") == {"facts.json", "model.safetensors"}


def test_what_another_process_writes_into_the_run_is_not_swept(tmp_path):
    fit(TinyTask(), tiny_recipe(), tmp_path / "run", **QUIET)
    with growing(tmp_path / "run" / "scores.json") as draft:
        draft.write_text("{}")
        with RunFolder(tmp_path / "run").locked():
            pass
    assert (tmp_path / "run" / "scores.json").read_text() == "{}"


def test_a_checkpoint_whose_writer_was_killed_in_the_swap_is_put_back(tmp_path):
    out, task = tmp_path / "run", TinyTask()
    task.signal_at = 5
    fit(task, tiny_recipe(keep_checkpoints=1), out, **QUIET)
    (newest,) = (out / "checkpoints").glob("step-*")
    os.replace(newest, newest.with_name(f".{newest.name}.abcd.saccade-old"))
    with RunFolder(out).locked():
        assert RunFolder(out).checkpoints.load_newest()[0].step == int(newest.name[5:])


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_training_into_the_folder_is_refused(tmp_path, resume):
    out, task = tmp_path / "run", TinyTask()
    task.signal_at = 5
    fit(task, tiny_recipe(), out, **QUIET)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with RunFolder(out).locked(), pytest.raises(OutputError, match="trains into"):
        fit(TinyTask(), tiny_recipe(), out, resume=resume, **QUIET)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
