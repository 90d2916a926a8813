"""What a run learns from: noted when it begins, compared when it goes on, and refused when it changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine_fakes import TinyTask, tiny_recipe

from saccade.engine import fit
from saccade.errors import CheckpointError, DataError

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


@pytest.mark.parametrize("new", [ROWS[1:], [*ROWS, ("x.png", "#7")], [("0.png", "#9"), *ROWS[1:]], ROWS[::-1], []])
def test_changed_data_is_refused_and_nothing_of_the_run_is_touched(tmp_path: Path, new: list) -> None:
    """Removed, added, changed, in another order, gone."""
    out = begun(tmp_path / "r")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(DataError, match=r"rows.*accept_changed_data"):
        go_on(out, task(rows=new))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    noted = (out / "data.json").read_bytes()
    go_on(out, task())  # put back, it goes on
    assert (out / "data.json").read_bytes() == noted
    assert "data_changes" not in json.loads((out / "model" / "facts.json").read_text())


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
