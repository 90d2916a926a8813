"""CUDA MPS: a daemon of one's own is started where none runs, and ended; without it nothing changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from saccade.engine import mps

DAEMON = """#!/bin/sh
read told
echo "$* $told" >> {log}
case "$*$told" in
  get_server_list) exit {running} ;;
  -d) touch "$CUDA_MPS_PIPE_DIRECTORY/control"; exit {starts} ;;
esac
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A program of that name that writes down what it is told; of the GPU nothing is asked."""
    monkeypatch.setattr(
        mps, "_PROBE", "import os; assert os.path.exists(os.environ['CUDA_MPS_PIPE_DIRECTORY'] + '/control')"
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def install(*, running: bool = False, starts: bool = True) -> Path:
        path = tmp_path / mps.PROGRAM
        path.write_text(DAEMON.format(log=tmp_path / "told", running=int(not running), starts=int(not starts)))
        path.chmod(0o755)
        return tmp_path / "told"

    return install


def test_a_daemon_of_ones_own_is_started_and_ended(program) -> None:
    told = program()
    with mps.shared_gpu() as (environment, how):
        pipes = Path(environment["CUDA_MPS_PIPE_DIRECTORY"])
        assert (pipes / "control").exists()
        assert set(environment) == {"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"}
        assert how == "by CUDA MPS, with a daemon of their own"
    assert told.read_text().split("\n") == [" get_server_list", "-d ", " quit -t 10", ""]
    assert not pipes.parent.exists()


def test_a_daemon_that_runs_is_used_and_left_alone(program) -> None:
    told = program(running=True)
    with mps.shared_gpu() as (environment, how):
        assert (environment, how) == ({}, "by CUDA MPS, whose daemon runs already")
    assert told.read_text() == " get_server_list\n"


def test_without_a_daemon_the_gpu_is_shared_by_time_slicing(program, monkeypatch: pytest.MonkeyPatch) -> None:
    program(starts=False)
    with mps.shared_gpu() as (environment, how):
        assert (environment, how) == ({}, "by time slicing, because nvidia-cuda-mps-control did not start")
    monkeypatch.setenv("PATH", "")
    with mps.shared_gpu() as (environment, how):
        assert (environment, how) == ({}, "by time slicing, because nvidia-cuda-mps-control is not installed")
