"""Progress of a run as lines of JSON, read and shown by another process."""

from __future__ import annotations

import io
import json
import signal

import pytest

from saccade.engine.event_lines import LineReporter, memory, replay
from saccade.engine.multi_run_progress import MultiRunProgress, PlainLines, RichLines, multi_run_progress
from saccade.engine.progress import PlainReporter, make_reporter


def told(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def a_run(reporter: LineReporter) -> None:
    reporter.begin("main", 0, 4, 8)
    for step in range(1, 5):
        reporter.advance(step)
    reporter.values("train", {"loss": 0.5})
    reporter.values("validation", {"accuracy": 0.75})
    reporter.preparing("features", 3, 3)
    reporter.note("finished")


def test_every_call_is_a_line_and_steps_are_told_now_and_then() -> None:
    stream = io.StringIO()
    a_run(LineReporter(stream, every=1e9))
    events = told(stream)
    assert [event["event"] for event in events] == [
        "begin", "advance", "values", "values", "memory", "preparing", "note",
    ]  # fmt: skip
    assert events[1] == {"event": "advance", "done": 4}  # the last step is told in any case
    assert events[3] == {"event": "values", "kind": "validation", "values": {"accuracy": 0.75}}
    often = io.StringIO()
    a_run(LineReporter(often, every=0.0))
    assert [event["done"] for event in told(often) if event["event"] == "advance"] == [1, 2, 3, 4]


def test_memory_is_told_before_anything_is_logged() -> None:
    """The other runs wait for it, and the first log of a slow training may take minutes."""
    stream = io.StringIO()
    reporter = LineReporter(stream, every=1e9)
    reporter.begin("main", 100, 200, 8)
    for step in range(101, 120):
        reporter.advance(step)
    assert [event["event"] for event in told(stream)] == ["begin", "memory"]


def test_what_was_told_is_played_to_another_reporter() -> None:
    stream, first, second = io.StringIO(), io.StringIO(), io.StringIO()
    lines = LineReporter(stream, every=0.0)
    a_run(lines)
    lines.emit("result", stopped="finished")
    shown = PlainReporter(first, every=0.0)
    for event in told(stream):
        replay(event, shown)
    a_run(PlainReporter(second, every=0.0))  # type: ignore[arg-type]

    def without_rates(text: str) -> list[str]:
        return [line.partition("  ")[0] for line in text.splitlines()]

    assert without_rates(first.getvalue()) == without_rates(second.getvalue())
    assert without_rates(first.getvalue())[-1] == "finished"


def test_who_is_not_heard_any_more_asks_itself_to_stop() -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    asked: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    try:
        reporter = LineReporter(Broken())
        reporter.note("one")
        reporter.note("two")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert asked == [signal.SIGTERM]  # once: a second one would not wait for the step to end


def test_a_reporter_is_used_as_it_is() -> None:
    reporter = LineReporter(io.StringIO())
    assert make_reporter(reporter) is reporter


def test_memory_is_of_this_process_and_machine() -> None:
    found = memory()["machine"]
    assert found["used"] > 10 * 2**20
    assert found["free"] > 0


EVENTS = [
    ("a", {"event": "ready"}),
    ("a", {"event": "begin", "phase": "main", "done": 0, "total": 4, "images_per_step": 8}),
    ("b", {"event": "note", "text": "warning: something"}),
    ("a", {"event": "values", "kind": "validation", "values": {"accuracy": 0.75}}),
    ("a", {"event": "preparing", "what": "features", "done": 3, "total": 9}),
    ("a", {"event": "advance", "done": 4}),
    ("a", {"event": "memory", "machine": {"used": 1, "free": 2}}),
    ("b", {"event": "refused", "text": "no"}),
    (None, {"event": "note", "text": "2 at once"}),
    ("a", {"event": "result", "stopped": "finished"}),
]


def test_plain_lines_have_the_name_of_their_run() -> None:
    stream = io.StringIO()
    with PlainLines(["a", "b"], stream, every=0.0) as shown:
        for run, event in EVENTS:
            shown.event(run, event)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "b: warning: something"
    assert lines[1].startswith("a: main 4/4  ")
    assert lines[1].endswith("val: accuracy 0.75")
    assert lines[2:] == ["2 at once"]


def test_a_terminal_has_one_line_for_each_run(capsys: pytest.CaptureFixture[str]) -> None:
    with RichLines(["a", "b"]) as shown:
        for run, event in EVENTS:
            shown.event(run, event)
        first, second = shown._bar.tasks
    assert (first.description, first.completed, first.total, first.fields["phase"]) == ("a", 4, 4, "finished")
    assert first.fields["validation"] == "val: accuracy 0.75"
    assert (second.description, second.fields["phase"]) == ("b", "failed")
    assert "b: warning: something" in capsys.readouterr().err


def test_the_mode_decides_who_shows() -> None:
    assert type(multi_run_progress("quiet", ["a"])) is MultiRunProgress
    assert type(multi_run_progress("plain", ["a"])) is PlainLines
    assert type(multi_run_progress("rich", ["a"])) is RichLines
