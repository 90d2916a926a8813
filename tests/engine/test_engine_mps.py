"""CUDA MPS: a daemon of one's own is started where none runs, and ended; without it nothing changes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from saccade.engine import mps

CONTROL = """#!/bin/sh
read told
echo "$* $told" >> {log}
case "$*$told" in
  -d) exit {starts} ;;
  quit) exit {ends} ;;
esac
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A program of that name that writes down what it is told; of the GPU nothing is asked, no daemon runs."""
    monkeypatch.setattr(mps, "_PROBE", "import os; assert os.path.isdir(os.environ['CUDA_MPS_PIPE_DIRECTORY'])")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path / "nobody"))

    def install(*, starts: bool = True, ends: bool = True) -> Path:
        path = tmp_path / mps.PROGRAM
        path.write_text(CONTROL.format(log=tmp_path / "told", starts=int(not starts), ends=int(not ends)))
        path.chmod(0o755)
        return tmp_path / "told"

    return install


@pytest.fixture
def daemon(tmp_path: Path):
    """A process whose name is that of the daemon."""
    path = tmp_path / "daemon" / mps.PROGRAM
    path.parent.mkdir()
    path.symlink_to("/bin/sh")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([path, "-c", "echo ready; read end"], **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"  # from here on the system knows it by that name
        yield process
        process.kill()


def test_a_daemon_of_ones_own_is_started_and_ended(program) -> None:
    told = program()
    with mps.shared_gpu() as (environment, how):
        pipes = Path(environment["CUDA_MPS_PIPE_DIRECTORY"])
        assert pipes.is_dir()
        assert set(environment) == {"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"}
        assert how == "by CUDA MPS, with a daemon of their own"
        assert told.read_text() == "-d \n"
    assert told.read_text() == "-d \n quit\n"
    assert not pipes.parent.exists()


def test_a_daemon_that_does_not_quit_is_ended_by_its_id(program, daemon: subprocess.Popen) -> None:
    program(ends=False)
    with mps.shared_gpu() as (environment, _):
        pid_file = Path(environment["CUDA_MPS_PIPE_DIRECTORY"]) / "nvidia-cuda-mps-control.pid"
        pid_file.write_text(f"{daemon.pid}\n")
    assert daemon.wait(10) == -signal.SIGTERM


def test_another_process_of_the_same_id_is_left_alone(program) -> None:
    program(ends=False)
    with mps.shared_gpu() as (environment, _):
        pid_file = Path(environment["CUDA_MPS_PIPE_DIRECTORY"]) / "nvidia-cuda-mps-control.pid"
        pid_file.write_text(f"{os.getpid()}\n")  # or the test would end here


def test_a_daemon_that_runs_is_used_and_left_alone(
    program, daemon: subprocess.Popen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = program()
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    (tmp_path / "nvidia-cuda-mps-control.pid").write_text(str(daemon.pid))
    with mps.shared_gpu() as (environment, how):
        assert (environment, how) == ({}, "by CUDA MPS, whose daemon runs already")
    assert not told.exists()
    assert daemon.poll() is None


def test_without_a_daemon_the_gpu_is_shared_by_time_slicing(program, monkeypatch: pytest.MonkeyPatch) -> None:
    program(starts=False)
    with mps.shared_gpu() as (environment, how):
        assert (environment, how) == ({}, "by time slicing, because nvidia-cuda-mps-control did not start")
    monkeypatch.setenv("PATH", "")
    with mps.shared_gpu() as (environment, how):
        assert (environment, how) == ({}, "by time slicing, because nvidia-cuda-mps-control is not installed")


def _ended_by(number: signal.Signals) -> None:
    assert signal.getsignal(number) is not signal.SIG_DFL  # or all tests would end here
    signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_would_end_the_process_ends_the_daemon_too(program, number: signal.Signals) -> None:
    told = program()
    before = signal.getsignal(number)
    try:
        signal.signal(number, signal.SIG_DFL)
        with pytest.raises(SystemExit) as ended, mps.shared_gpu():
            _ended_by(number)
        assert ended.value.code == 128 + number
        assert told.read_text().endswith(" quit\n")
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_signal_that_is_ignored_stays_so(program) -> None:
    program()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        with mps.shared_gpu():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
