"""What a person sees while several models train: a live line for each on a terminal, prefixed lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from saccade.engine.event_lines import Event, replay
from saccade.engine.progress import NO_NUMBERS, PlainReporter, ProgressMode, brief, training_bar

if TYPE_CHECKING:
    from rich.progress import TaskID

_EVERY = 15.0  # seconds between two plain lines of one run


class MultiRunProgress:
    """Says nothing; the two talkative ones build on it. Also a context manager."""

    def event(self, run: str | None, event: Event) -> None:
        """A run told something; None: it concerns all of them."""

    def __enter__(self) -> MultiRunProgress:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave the screen in order."""


class _Prefixed:
    """A stream that puts the name of a run before every line."""

    def __init__(self, name: str, stream: IO[str]) -> None:
        self._name, self._stream = name, stream

    def write(self, text: str) -> None:
        self._stream.write(f"{self._name}: {text}")

    def flush(self) -> None:
        self._stream.flush()


class PlainLines(MultiRunProgress):
    """A line of each run now and then, with its name before it."""

    def __init__(self, runs: Sequence[str], stream: IO[str] | None = None, every: float = _EVERY) -> None:
        self._stream = stream or sys.stderr
        self._reporters = {
            run: PlainReporter(cast("IO[str]", _Prefixed(run, self._stream)), every=every) for run in runs
        }

    def event(self, run: str | None, event: Event) -> None:
        """Write it, if the last line of the run is old enough."""
        if run is not None:
            replay(event, self._reporters[run])
        elif event["event"] == "note":
            self._stream.write(event["text"] + "\n")
            self._stream.flush()


class RichLines(MultiRunProgress):
    """One live line for each run: phase, bar, rate, time left, loss and the last validation."""

    def __init__(self, runs: Sequence[str]) -> None:
        self._bar = training_bar("phase", width=20)
        empty = {"phase": "waiting", **NO_NUMBERS}
        self._tasks: dict[str, TaskID] = {
            run: self._bar.add_task(run, total=None, start=False, **empty) for run in runs
        }
        self._images: dict[str, int] = {}

    def __enter__(self) -> RichLines:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def event(self, run: str | None, event: Event) -> None:
        """Move the line of the run; rich draws four times a second at most."""
        kind = event["event"]
        if kind == "note":
            self._bar.console.print(f"{run}: {event['text']}" if run else event["text"], markup=False, highlight=False)
        if run is None:
            return
        task, fields = self._tasks[run], dict[str, Any]()
        if kind == "begin":
            self._images[run] = event["images_per_step"]
            self._bar.reset(task, total=event["total"], completed=event["done"])
            fields = {"phase": event["phase"]}
        elif kind == "advance":
            speed = self._bar.tasks[list(self._tasks).index(run)].speed
            rate = f"{speed * self._images.get(run, 0):.0f} examples/s" if speed else ""
            fields = {"completed": event["done"], "rate": rate}
        elif kind == "preparing":
            fields = {"phase": f"{event['what']} {event['done']:,}/{event['total']:,}"}
        elif kind == "values":
            fields = {event["kind"]: brief(event["values"], event["kind"])}
        elif kind == "result":
            fields = {"phase": event["stopped"]}
        elif kind == "refused":
            fields = {"phase": "failed"}
        if fields:
            self._bar.update(task, **fields)


def multi_run_progress(mode: ProgressMode, runs: Sequence[str]) -> MultiRunProgress:
    """What shows ``runs``; ``auto`` looks whether standard error is a terminal."""
    if mode == "quiet":
        return MultiRunProgress()
    if mode == "rich" or (mode == "auto" and sys.stderr.isatty()):
        return RichLines(runs)
    return PlainLines(runs)
