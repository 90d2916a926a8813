"""The tool that kills commands: it finds what is wrong, and a few kills of real commands find nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from kill import Outcome, Point, _trial, _undisturbed
from kill_targets import Target

TOOL = Path(__file__).parents[1] / "tools" / "kill.py"


def _careless(shared: Path, place: Path, resume: bool) -> None:
    with (place / "a").open("a") as file:
        for part in ("first", "second"):
            file.write(part)
            file.flush()
            os.fsync(file.fileno())


def _trials(run, scratch: Path) -> list[Outcome]:
    (scratch / "shared").mkdir()
    target = Target("made-up", run)
    undisturbed = _undisturbed(target, scratch)
    points = [Point(sign * call) for call in range(1, undisturbed.calls + 1) for sign in (1, -1)]
    chance = random.Random(0)
    return [_trial(n, target, point, undisturbed, scratch, chance) for n, point in enumerate(points)]


def test_a_command_that_appends_is_found_out(tmp_path: Path) -> None:
    found = _trials(_careless, tmp_path)
    assert {each.how for each in found} == {"wrong"}
    assert all("a differs" in each.text for each in found)


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
