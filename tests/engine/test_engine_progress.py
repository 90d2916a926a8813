"""What the reporters say."""

from __future__ import annotations

import io
import re

from saccade.engine import progress
from saccade.engine.progress import PlainReporter, RichReporter, make_reporter


def test_plain_lines_come_every_few_seconds_and_at_the_end(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    reporter = PlainReporter(stream, every=5)
    reporter.begin("main", 0, 100, 32)
    for step in range(1, 101):
        now[0] += 0.2
        if step == 20:
            reporter.values("train", {"loss": 0.5, "lr": 1e-3})
            reporter.values("validation", {"accuracy": 0.75, "loss": 0.625})
        reporter.advance(step)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0] == "main 25/100  160 examples/s  0:00:15 left  train: loss 0.5  val: accuracy 0.75, loss 0.625"
    assert lines[-1].startswith("main 100/100  160 examples/s  0:00:00 left")


def test_rich_bar_shows_numbers(capsys):
    with make_reporter("rich") as reporter:
        assert isinstance(reporter, RichReporter)
        reporter.begin("warm-up", 0, 10, 4)
        reporter.values("train", {"loss": 0.25})
        reporter.values("validation", {"loss": 0.5})
        reporter.advance(10)
        reporter.note("[bold] is not markup here")
    said = capsys.readouterr().err
    assert "warm-up" in said
    assert "10/10" in said
    assert re.search("train: loss 0.25 +val: loss 0.5", " ".join(said.split()))  # two losses, and whose each is
    assert "[bold] is not markup here" in said
