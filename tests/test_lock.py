"""One process at a time, and a lock that ends with its process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dead_writers import run
from saccade import lock, owner
from saccade.errors import OutputError
from saccade.lock import LockedError, locked

HOLD = """
import os, sys
from pathlib import Path
from saccade.lock import locked
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


def test_a_lock_is_there_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with locked(path, "trains") as remark:
        assert remark == ""
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert not path.exists()


def test_the_second_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with holder(path) as process:
        with pytest.raises(LockedError) as caught, locked(path, "trains into runs/a"):
            pass
        said = str(caught.value)
        assert said.startswith(f"process {process.pid} on {owner.host()}, since 20")
        assert "trains into runs/a" in said
        assert "remove" not in said
        assert "\n" not in said
        process.communicate("end\n", timeout=60)
    with locked(path, "trains") as remark:
        assert remark == ""


def test_the_lock_of_a_killed_process_is_taken_over_and_said(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with holder(path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        assert path.is_file()
        with locked(path, "trains") as remark:
            assert f"process {process.pid} on {owner.host()}" in remark
            assert "is gone" in remark
            assert json.loads(path.read_text())["pid"] == os.getpid()
    assert not path.exists()


def test_a_forked_process_does_not_keep_the_lock_of_its_dead_parent(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with holder(path, "fork") as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        with locked(path, "trains") as remark:  # its child still waits for a line
            assert "is gone" in remark


def test_one_process_does_not_take_it_twice(tmp_path: Path) -> None:
    with locked(tmp_path / "l", "trains"):
        with pytest.raises(LockedError, match=f"process {os.getpid()} "), locked(tmp_path / "l", "trains"):
            pass
        assert (tmp_path / "l").is_file()


def _written(path: Path, **changes: object) -> None:
    values = {"pid": 4, "started": 5, "host": owner.host(), "boot": owner.boot(), "since": "2026-01-01T00:00:00+00:00"}
    path.write_text(json.dumps(values | changes))


@pytest.mark.skipif(lock.fcntl is None, reason="the system has no flock")
def test_a_lock_that_the_kernel_grants_is_taken_over_also_from_another_host(tmp_path: Path) -> None:
    path = tmp_path / "l"
    _written(path, host="elsewhere", boot="another")
    with locked(path, "trains") as remark:
        assert remark.startswith("process 4 on elsewhere, since 2026")
        assert "was taken over" in remark
    assert not path.exists()


def test_without_flock_the_lock_of_another_host_is_refused_with_what_to_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    path = tmp_path / "l"
    _written(path, host="elsewhere", boot="another")
    with pytest.raises(LockedError, match="process 4 on elsewhere") as caught, locked(path, "trains"):
        pass
    assert f"remove {path}" in str(caught.value)
    path.unlink()
    with locked(path, "trains"):
        pass


@pytest.mark.skipif(not owner.boot(), reason="the system does not name its boots")
def test_a_container_with_another_name_on_the_same_kernel_is_not_another_host(tmp_path: Path) -> None:
    _written(tmp_path / "l", host="elsewhere")
    with locked(tmp_path / "l", "trains") as remark:
        assert "process 4 on elsewhere" in remark


def test_a_machine_that_was_restarted_has_let_go(tmp_path: Path) -> None:
    _written(tmp_path / "l", boot="before")
    with locked(tmp_path / "l", "trains") as remark:
        assert "is gone" in remark


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', "[" * 5000])
def test_a_lock_file_that_says_nothing_is_free(tmp_path: Path, content: str) -> None:
    (tmp_path / "l").write_text(content)
    with locked(tmp_path / "l", "trains") as remark:
        assert remark == ""


@pytest.mark.parametrize(
    "wrong", [{"pid": "7"}, {"pid": -1}, {"pid": True}, {"started": None}, {"host": 5}, {"boot": []}, {"since": {}}]
)
def test_a_lock_file_with_values_of_other_types_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, object]
) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    _written(tmp_path / "l", **wrong)
    with locked(tmp_path / "l", "trains") as remark:
        assert remark == ""


def test_who_waits_is_told_once_and_gets_it(tmp_path: Path) -> None:
    path, told, waits, got = tmp_path / "l", list[str](), threading.Event(), threading.Event()

    def wait(holder: str) -> None:
        told.append(holder)
        waits.set()

    def second() -> None:
        with locked(path, "fetches", wait=wait):
            got.set()

    thread = threading.Thread(target=second)
    with locked(path, "fetches"):
        thread.start()
        assert waits.wait(60)
        assert not got.is_set()
    thread.join(60)
    assert got.is_set()
    assert len(told) == 1
    assert told[0].startswith(f"process {os.getpid()} on ")


def test_a_place_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"), locked(tmp_path / "none" / "l", "trains"):
        pass


def test_without_flock_a_running_process_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    with locked(tmp_path / "l", "trains"):
        with pytest.raises(LockedError, match=f"process {os.getpid()} ") as caught, locked(tmp_path / "l", "trains"):
            pass
        assert f"remove {tmp_path / 'l'}" in str(caught.value)
        assert (tmp_path / "l").is_file()
    assert not (tmp_path / "l").exists()


def test_without_flock_a_dead_process_has_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("import os; from saccade import owner; print(os.getpid(), owner.started(os.getpid()))")
    pid, started = map(int, done.stdout.split())
    _written(tmp_path / "l", pid=pid, started=started)
    monkeypatch.setattr(lock, "fcntl", None)
    with locked(tmp_path / "l", "trains") as remark:
        assert f"process {pid} " in remark
