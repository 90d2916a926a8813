"""Signals and time limits end a run cleanly and leave it fit to resume."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from engine_fakes import TinyTask, tiny_recipe

from saccade.engine import fit, progress
from saccade.engine.progress import StopRequest
from saccade.errors import ConfigError

LONG = tiny_recipe({"steps": 100_000})

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from engine_fakes import TinyTask, tiny_recipe
from saccade.engine import fit

class Waiting(TinyTask):
    def train_batches(self, start, **options):
        for number, batch in enumerate(super().train_batches(start, **options), start):
            if number == 5:
                print("in the sixth step", flush=True)
                sys.stdin.readline()
            yield batch

result = fit(Waiting(), tiny_recipe({"steps": 100000}), sys.argv[2], device="cpu", progress="plain")
print("stopped", result.stopped, result.step)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_to_a_process_saves_and_says_how_to_go_on(tmp_path, number):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in the sixth step\n"
    os.kill(process.pid, number)
    said, complaints = process.communicate("go on\n", timeout=60)
    assert process.returncode == 0, complaints
    assert said.startswith("stopped signal ")
    step = int(said.split()[-1])
    assert step == 6
    assert f"checkpoints/step-{step:08d}" in str(sorted((out / "checkpoints").iterdir())[-1])
    assert "--resume" in complaints
    assert "Traceback" not in complaints


def test_time_limit(tmp_path, monkeypatch):
    minutes = itertools.count()  # on this clock every step takes one
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 60.0 * next(minutes)))
    result = fit(TinyTask(), LONG, tmp_path / "run", max_minutes=7, device="cpu", progress="quiet")
    assert result.stopped == "time"
    assert result.step == 7
    assert result.checkpoint is not None
    assert result.checkpoint.name == f"step-{result.step:08d}"


@pytest.mark.parametrize("years", [-30, 30])
def test_a_time_limit_does_not_heed_the_clock_on_the_wall(tmp_path, monkeypatch, years):
    """Set back, that clock would never reach a limit; set forward, it would reach any at once."""
    shown = itertools.count(years * 31_536_000, 60 * years)
    monkeypatch.setattr("time.time", lambda: float(next(shown)))
    monkeypatch.setattr("time.time_ns", lambda: 10**9 * next(shown))
    short = fit(
        TinyTask(), tiny_recipe({"steps": 40}), tmp_path / "a", max_minutes=1e-9, device="cpu", progress="quiet"
    )
    assert (short.stopped, short.step) == ("time", 1)
    long = fit(TinyTask(), tiny_recipe({"steps": 4}), tmp_path / "b", max_minutes=1000, device="cpu", progress="quiet")
    assert (long.stopped, long.step) == ("finished", 4)
    assert 0 <= long.seconds < 1000 * 60


def test_senseless_time_limit_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="max_minutes"):
        fit(TinyTask(), LONG, tmp_path / "run", max_minutes=0, device="cpu", progress="quiet")
    assert not (tmp_path / "run").exists()


def test_second_signal_does_not_wait():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs in the background ignores it
    try:
        with StopRequest() as request:
            signal.raise_signal(signal.SIGINT)
            assert request.reason() == "signal"
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopRequest() as request:
        assert signal.getsignal(signal.SIGTERM) != before[0]
        assert request.reason() is None
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_works_outside_the_main_thread():
    seen = []

    def work():
        with StopRequest(max_minutes=1e-9) as request:
            seen.append(request.reason())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["time"]
