"""What a run learns from: noted when it begins, compared when it goes on, and refused when it changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from engine_fakes import TinyTask, tiny_recipe, weights

from saccade.engine import fit
from saccade.engine.data_note import DataNote, data_changes, read_note
from saccade.errors import CheckpointError, ConfigError, DataError

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


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (ROWS, []),
        (ROWS[1:4], ["rows: 3 of 6 removed (first 0.png)"]),
        ([*ROWS, ("x.png", "#7"), ("x.png", "#8")], ["rows: 2 added (first x.png)"]),
        ([ROWS[0], ("1.png", "#9"), *ROWS[2:]], ["rows: 1 changed (first 1.png)"]),
        ([*ROWS[2:], ROWS[0], ROWS[1]], ["rows: in another order (first 0.png)"]),
        ([*ROWS[1:5], ("5.png", "#9"), ("y", "#1")], [
            "rows: 1 of 6 removed (first 0.png), 1 added (first y), 1 changed (first 5.png)",
        ]),
        ([], ["rows: 6 of 6 removed (first 0.png)"]),
    ],
)  # fmt: skip
def test_changes_are_counted_and_the_first_is_named(new: list, told: list[str]) -> None:
    assert data_changes({"rows": ROWS}, {"rows": new}) == told


def test_plain_values_are_shown_and_parts_named() -> None:
    old = {"settings": [("seed", "0"), ("size", "48")], "vocabulary": [("answer 0", "red")]}
    new = {"settings": [("seed", "1"), ("size", "48")], "glyphs": [("train", "#1")]}
    assert data_changes(old, new) == [
        "settings: 1 changed (first seed: was 0, now 1)",
        "vocabulary: 1 of 1 removed (first answer 0: red)",
        "glyphs: 1 added (first train)",
    ]


def test_entries_of_one_name_are_told_apart_by_their_place() -> None:
    old = [("a.png", "#1"), ("a.png", "#2"), ("a.png", "#3")]
    assert data_changes({"rows": old}, {"rows": [*old[:1], ("a.png", "#9"), *old[2:]]}) == [
        "rows: 1 changed (first a.png)"
    ]
    assert data_changes({"rows": old}, {"rows": old[:2]}) == ["rows: 1 of 3 removed (first a.png)"]


def test_a_note_is_written_and_unchanged_data_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole = task()
    fit(whole, RECIPE, tmp_path / "whole", device="cpu", progress="quiet")
    noted = read_note(begun(tmp_path / "parts"))
    assert noted == DataNote({"settings": [("seed", "0")], "rows": ROWS})
    again = go_on(tmp_path / "parts", task())
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(again)[name]), name
    assert read_note(tmp_path / "parts") == noted
    assert "data_changes" not in json.loads((tmp_path / "parts" / "model" / "facts.json").read_text())


def test_changed_data_is_refused_and_nothing_of_the_run_is_touched(tmp_path: Path) -> None:
    out = begun(tmp_path / "r")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    message = (
        r"r: the data is not what the run began with: rows: 2 of 6 removed \(first 0\.png\).*`accept_changed_data=True`"
    )
    with pytest.raises(DataError, match=message):
        go_on(out, task(rows=ROWS[2:]))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    go_on(out, task())  # put back, it goes on


def test_an_accepted_change_is_said_noted_and_kept_with_the_model(tmp_path: Path) -> None:
    out = begun(tmp_path / "r")
    go_on(out, task(rows=ROWS[2:]), accept_changed_data=True)
    told = "from step 2 on: rows: 2 of 6 removed (first 0.png)"
    assert "warning: the data changed, which was accepted: rows: 2 of 6 removed (first 0.png)" in log(out)
    assert read_note(out) == DataNote({"settings": [("seed", "0")], "rows": ROWS[2:]}, (told,))
    assert json.loads((out / "model" / "facts.json").read_text())["data_changes"] == [told]
    with pytest.raises(DataError, match="rows: 2 added"):  # the new data is what it learns from now
        go_on(out, task())
    go_on(out, task(), accept_changed_data=True)
    assert read_note(out).accepted == (told, "from step 8 on: rows: 2 added (first 0.png)")


def test_accepting_changes_nothing_where_nothing_changed(tmp_path: Path) -> None:
    out = begun(tmp_path / "r")
    go_on(out, task(), accept_changed_data=True)
    assert read_note(out).accepted == ()
    with pytest.raises(ConfigError, match="add `resume=True`"):
        fit(task(), RECIPE, tmp_path / "new", accept_changed_data=True, device="cpu", progress="quiet")


def test_a_run_of_an_earlier_version_goes_on_with_one_remark(tmp_path: Path) -> None:
    out = begun(tmp_path / "r")
    (out / "data.json").unlink()
    go_on(out, task(rows=ROWS[2:]))
    assert log(out).count("whether the data changed since cannot be checked") == 1
    assert read_note(out).parts["rows"] == ROWS[2:]
    go_on(out, task(rows=ROWS[2:]))
    assert log(out).count("cannot be checked") == 1


@pytest.mark.parametrize("content", ["", "[]", "{", '{"schema_version": 9, "parts": {}, "accepted": []}', "[" * 99999])
def test_a_note_that_cannot_be_read_is_an_error_unless_changes_are_accepted(tmp_path: Path, content: str) -> None:
    out = begun(tmp_path / "r")
    (out / "data.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"data\.json: cannot be read .*`accept_changed_data=True`"):
        go_on(out, task())
    go_on(out, task(), accept_changed_data=True)
    assert read_note(out).accepted == ("from step 2 on: it is not known how: data.json could not be read",)


def test_a_run_that_was_refused_before_its_first_step_may_start_anew(tmp_path: Path) -> None:
    """The note of a run that was killed before its first checkpoint is no reason to refuse the folder."""
    out = begun(tmp_path / "r")
    for name in ("metrics.jsonl", "log.txt"):
        (out / name).unlink(missing_ok=True)
    for path in sorted((out / "checkpoints").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert {path.name for path in out.iterdir()} == {"config.yaml", "data.json", "checkpoints"}
    assert fit(task(), RECIPE, out, device="cpu", progress="quiet").stopped == "finished"
