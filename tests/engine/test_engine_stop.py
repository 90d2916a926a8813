"""Signals and time limits end a run cleanly and leave it fit to resume."""

from __future__ import annotations

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
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
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


class Slow(TinyTask):
    """Every step takes a minute."""

    minutes = 0

    def inputs(self, batch):
        self.minutes += 1
        return super().inputs(batch)


def test_time_limit(tmp_path, monkeypatch):
    task = Slow()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 60.0 * task.minutes))
    result = fit(task, LONG, tmp_path / "run", max_minutes=7, device="cpu", progress="quiet")
    assert result.stopped == "time"
    assert result.step == 7
    assert result.checkpoint is not None
    assert result.checkpoint.name == f"step-{result.step:08d}"


def test_works_outside_the_main_thread():
    seen = []

    def work():
        with StopRequest(max_minutes=1e-9) as request:
            seen.append(request.reason())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["time"]


def test_a_second_signal_does_not_wait_and_handlers_are_put_back():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs in the background ignores it
    term = signal.getsignal(signal.SIGTERM)
    try:
        with StopRequest() as request:
            assert request.reason() is None
            assert signal.getsignal(signal.SIGTERM) != term
            signal.raise_signal(signal.SIGINT)
            assert request.reason() == "signal"
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGTERM) == term
    finally:
        signal.signal(signal.SIGINT, before)
