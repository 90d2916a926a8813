"""Disks without room: one line, exit code 2, nothing half-written; and a training that goes on when there is room."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tiny_runs import FRESH, TINY

TRAIN = ("train", "soft-mref", "--device", "cpu", "--quiet")
TRAIN += tuple(word for each in (*TINY, *FRESH) for word in ("--set", each))


def limit_files(size: int) -> Callable[[], None]:
    """No file may get larger than this: writing ends in the middle, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def refused(size: int, *words: object) -> str:
    """The one line that a command ends with where files are limited."""
    command = [sys.executable, "-m", "saccade", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit_files(size))
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()  # torch 2.15 adds some of its own
    (line,) = (line for line in lines if line.startswith("error: "))
    return line


@pytest.mark.parametrize("verb", ["train", "look", "data"])
def test_a_disk_without_room(run: Path, tmp_path: Path, verb: str) -> None:
    Image.new("RGB", (100, 100), "white").save(tmp_path / "a.png")
    words = {
        "train": (*TRAIN, "--out", tmp_path / "out" / "run"),
        "look": ("look", tmp_path / "a.png", "--model", run, "--ask", "1", "-q", "--out", tmp_path / "out"),
        "data": ("data", "make", "mref", "--glyphs", "pack", "-n", "2", "-q", "--out", tmp_path / "out" / "scenes"),
    }
    line = refused(300, *words[verb])
    assert "cannot write" in line
    assert "ulimit -f" in line
    assert not [path for path in (tmp_path / "out").rglob("*") if "saccade" in path.name]  # no drafts, no lock
