"""What is shown of a run while it trains, and how it is asked to stop."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from engine_fakes import TinyTask, tiny_recipe

from saccade.engine import progress
from saccade.engine.loop import fit
from saccade.engine.progress import Journal, StopRequest
from saccade.engine.run_folder import RunFolder

LONG = tiny_recipe({"steps": 100_000})


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


def journal(folder: Path, mode: str) -> Journal:
    return Journal(RunFolder(folder), mode, writes=True)


def record(written: Journal, kind: str, **values: float) -> None:
    written.record(kind, 1, "main", values, 0.0, replicas=None)


def test_plain_lines_come_every_few_seconds_and_at_the_end(tmp_path, monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with journal(tmp_path, "plain") as written:
        written.begin("main", 0, 100, 32)
        for step in range(1, 101):
            now[0] += 0.2
            if step == 20:
                record(written, "train", loss=0.5, lr=1e-3)
                record(written, "validation", accuracy=0.75, loss=0.625)
            written.advance(step)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[0] == "main 25/100  160 examples/s  0:00:15 left  train: loss 0.5  val: accuracy 0.75, loss 0.625"
    assert lines[-1].startswith("main 100/100  160 examples/s  0:00:00 left")
