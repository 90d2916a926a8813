"""Two trainings do not share a folder; one that was killed early can be started either way; changed data is refused."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from engine_fakes import TinyTask, read_metrics, tiny_recipe, weights

from saccade.engine.loop import fit
from saccade.engine.run_folder import LOCK, RunFolder
from saccade.errors import CheckpointError, DataError, OutputError

QUIET = {"device": "cpu", "progress": "quiet"}


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _left_by_a_kill(out: Path, state: str) -> None:
    """What a SIGKILL leaves at moments between the making of the folder and the first checkpoint."""
    out.mkdir()
    (out / LOCK).write_text("")
    if state == "draft of the recipe":
        (out / ".config.yaml.abcd.saccade-part").write_text("recip")
        return
    with ExitStack() as stack:
        RunFolder(out).open(stack, tiny_recipe(), {}, resume=False)
    (out / LOCK).write_text("")
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


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_training_into_the_folder_is_refused(tmp_path, resume):
    out, task = tmp_path / "run", TinyTask()
    task.signal_at = 5
    fit(task, tiny_recipe(), out, **QUIET)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with RunFolder(out).locked(), pytest.raises(OutputError, match="trains into"):
        fit(TinyTask(), tiny_recipe(), out, resume=resume, **QUIET)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


RECIPE = tiny_recipe({"steps": 8, "validate_every": 4, "select": {"metric": "accuracy"}})
ROWS = [(f"{number}.png", f"#{number}") for number in range(6)]


def task(**changes: list[tuple[str, str]]) -> TinyTask:
    made = TinyTask()
    made.parts = {"settings": [("seed", "0")], "rows": ROWS, **changes}
    made.scripted = [0.1 * number for number in range(1, 9)]  # better each time, so that each is kept
    return made


def begun(out: Path) -> Path:
    """A run that stopped after two steps."""
    stopping = task()
    stopping.signal_at = 1
    assert fit(stopping, RECIPE, out, device="cpu", progress="quiet").step == 2
    return out


def go_on(out: Path, again: TinyTask, **options: bool) -> TinyTask:
    assert fit(again, RECIPE, out, resume=True, device="cpu", progress="quiet", **options).stopped == "finished"
    return again


def log(out: Path) -> str:
    return (out / "log.txt").read_text(encoding="utf-8")


def accepted(out: Path) -> list[str]:
    return json.loads((out / "data.json").read_text(encoding="utf-8"))["accepted"]


def test_an_accepted_change_is_said_noted_and_kept_with_the_model(tmp_path: Path) -> None:
    out = begun(tmp_path / "r")
    go_on(out, task(rows=ROWS[2:]), accept_changed_data=True)
    assert "the data changed, which was accepted: rows" in log(out)
    (first,) = accepted(out)
    assert first.startswith("from step 2 on: rows")
    assert json.loads((out / "model" / "facts.json").read_text())["data_changes"] == [first]
    with pytest.raises(DataError, match="rows"):  # the new data is what it learns from now
        go_on(out, task())
    go_on(out, task(), accept_changed_data=True)
    assert accepted(out)[0] == first
    assert accepted(out)[1].startswith("from step 8 on: rows")


@pytest.mark.parametrize("content", [None, "{", '{"schema_version": 9, "parts": {}, "accepted": []}', "[" * 99999])
def test_a_note_that_cannot_be_read_is_an_error_unless_changes_are_accepted(tmp_path: Path, content: str) -> None:
    out = begun(tmp_path / "r")
    (out / "data.json").unlink() if content is None else (out / "data.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"data\.json.*`accept_changed_data=True`"):
        go_on(out, task())
    go_on(out, task(), accept_changed_data=True)
    assert len(accepted(out)) == 1
