"""The tool that kills commands: it finds what is wrong, and a few kills of real commands find nothing."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from kill import Outcome, Point, Undisturbed, _points, _trial, _undisturbed, differences, in_child, state_of
from kill_targets import Target

from saccade.atomic import write_text
from saccade.errors import DataError

TOOL = Path(__file__).parents[1] / "tools" / "kill.py"


def _careful(shared: Path, place: Path, resume: bool) -> None:
    for name in "ab":
        write_text(place / name, name)


def _careless(shared: Path, place: Path, resume: bool) -> None:
    with (place / "a").open("a") as file:
        for part in ("first", "second"):
            file.write(part)
            file.flush()
            os.fsync(file.fileno())


def _stubborn(shared: Path, place: Path, resume: bool) -> None:
    if (place / "a").exists():
        raise DataError("a is there already; choose another place")
    write_text(place / "a", "a")


def _trials(run, scratch: Path) -> list[Outcome]:
    (scratch / "shared").mkdir()
    target = Target("made-up", run)
    undisturbed = _undisturbed(target, scratch)
    points = [Point(sign * call) for call in range(1, undisturbed.calls + 1) for sign in (1, -1)]
    chance = random.Random(0)
    return [_trial(n, target, point, undisturbed, scratch, chance) for n, point in enumerate(points)]


def test_a_command_that_writes_with_care_ends_equal(tmp_path: Path) -> None:
    found = _trials(_careful, tmp_path)
    assert len(found) == 2 * 6  # two files: fsync, rename and fsync of the folder
    assert {each.how for each in found} == {"equal"}
    assert all(each.kills >= 1 for each in found)


def test_a_command_that_appends_is_found_out(tmp_path: Path) -> None:
    found = _trials(_careless, tmp_path)
    assert {each.how for each in found} == {"wrong"}
    assert all("a differs" in each.text for each in found)


def test_a_refusal_is_counted_apart(tmp_path: Path) -> None:
    found = _trials(_stubborn, tmp_path)
    assert {each.how for each in found} == {"equal", "said"}
    assert all("a is there already" in each.text for each in found if each.how == "said")


def test_how_a_process_ended(tmp_path: Path) -> None:
    def sync() -> None:
        os.fsync(os.open(tmp_path, os.O_RDONLY))

    def refuse() -> None:
        raise DataError("no\nsuch picture")

    def break_down() -> None:
        raise ZeroDivisionError

    note = tmp_path / "note"
    whole = in_child(sync, note)
    assert (whole.how, whole.calls) == ("whole", 1)
    assert in_child(sync, note, Point(1)).how == "killed"
    assert in_child(sync, note, Point(-1)).how == "killed"
    assert in_child(sync, note, Point(2)).how == "whole"
    assert in_child(signal_wait, note, Point(seconds=0.01)).how == "killed"
    said = in_child(refuse, note)
    assert (said.how, said.text) == ("said", "no such picture")
    broken = in_child(break_down, note)
    assert broken.how == "broken"
    assert "ZeroDivisionError" in broken.text


def signal_wait() -> None:
    import signal

    signal.pause()


def test_times_are_not_compared_and_everything_else_is(tmp_path: Path) -> None:
    for name, minutes, step in (("a", 1, 2), ("b", 7, 2), ("c", 1, 3)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "f.json").write_text(json.dumps({"minutes": minutes, "of": [{"seconds": minutes, "step": step}]}))
        (folder / "card.md").write_text(f"- minutes: `{minutes}.5`\n- step: `{step}` in {folder}")
    states = [state_of(tmp_path / name) for name in "abc"]
    assert differences(states[0], states[1]) == []
    assert differences(states[0], states[2]) == ["card.md differs", "f.json differs"]
    (tmp_path / "b" / ".f.part").write_text("")
    (tmp_path / "b" / "card.md").unlink()
    assert differences(states[0], state_of(tmp_path / "b")) == ["card.md is missing", ".f.part is left over"]


def test_points_are_spread_over_all_calls() -> None:
    points = _points(Undisturbed({}, calls=30, seconds=2.0), 30, random.Random(0))
    at_calls = [abs(point.call) for point in points if point.seconds is None]
    assert len(at_calls) == 20
    assert (at_calls[0], at_calls[-1]) == (1, 29)
    assert len({point.call > 0 for point in points if point.call}) == 2
    times = [point.seconds for point in points if point.seconds is not None]
    assert len(times) == 10
    assert all(0 <= seconds <= 2 for seconds in times)


@pytest.mark.slow
def test_a_few_kills_of_real_commands(tmp_path: Path) -> None:
    command = [sys.executable, str(TOOL), "--targets", "get", "--count", "2"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("all"))
    trials, kills, equal, said, wrong = map(int, row[2:])
    assert kills >= 2
    assert (trials, equal, said, wrong) == (2, 2, 0, 0)
    assert not list(tmp_path.glob("saccade-kill-*"))
