"""One process at a time, and a lock that ends with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from saccade.errors import OutputError
from saccade.files import locked

HOLD = """
import os, sys
from pathlib import Path
from saccade.files import locked
with locked(Path(sys.argv[1]), "trains"):
    reads, writes = os.pipe()
    if len(sys.argv) > 2 and os.fork() == 0:
        os.write(writes, b"forked")  # after the hooks of a fork, so the lock is dropped
        sys.stdin.readline()
        os._exit(0)
    if len(sys.argv) > 2:
        os.read(reads, 6)
    print(os.getpid(), flush=True)
    sys.stdin.readline()
"""


@contextmanager
def holder(path: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock ``path``."""
    command = [sys.executable, "-c", HOLD, str(path), *more]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{process.pid}\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_second_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with holder(path) as process:
        with pytest.raises(OutputError, match="runs/a"), locked(path, "trains into runs/a"):
            pass
        process.communicate("end\n", timeout=60)
    assert not path.exists()
    with locked(path, "trains"):
        assert path.is_file()
    assert not path.exists()


@pytest.mark.parametrize("more", [(), ("fork",)], ids=["alone", "with a forked child"])
def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path, more: tuple[str, ...]) -> None:
    path = tmp_path / "l"
    with holder(path, *more) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        assert path.is_file()
        with locked(path, "trains"):  # a child may still wait for a line
            pass
    assert not path.exists()


def test_waiting_says_so_once_and_ends_with_the_holder(tmp_path: Path) -> None:
    path, said = tmp_path / "l", []
    with holder(path) as process:
        threading.Timer(0.6, process.kill).start()
        with locked(path, "fetches", wait=said.append):
            assert path.is_file()
    assert len(said) == 1
    assert "fetches" in said[0]


def test_many_processes_take_turns(tmp_path: Path) -> None:
    count = """
import sys
from pathlib import Path
from saccade.files import locked
path = Path(sys.argv[1])
for _ in range(20):
    with locked(path / "l", "counts", wait=lambda said: None):
        number = path / "n"
        number.write_text(str(int(number.read_text()) + 1))
"""
    (tmp_path / "n").write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", count, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0] * 3
    assert (tmp_path / "n").read_text() == "60"
    assert not (tmp_path / "l").exists()


def test_a_lock_in_a_place_that_is_none_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(OutputError, match=str(tmp_path / "f" / "l")), locked(tmp_path / "f" / "l", "trains"):
        pass
