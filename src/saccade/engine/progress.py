"""What is told of a run while it trains, on a terminal and in files, and how it is asked to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, Literal

from saccade.engine.run_folder import RunFolder

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Reason = Literal["time", "signal"]
STOPPING = b"\nstopping after the step or validation under way; a second signal ends it at once\n"
ProgressMode = Literal["auto", "rich", "plain", "quiet"]
_NO_NUMBERS: dict[str, Any] = {"rate": "", "train": "", "validation": ""}


class Reporter:
    """Says nothing; the two talkative ones build on it. Also a context manager."""

    def begin(self, phase: str, done: int, total: int, images_per_step: int) -> None:
        """A phase starts (or goes on) at step ``done`` of ``total``."""

    def advance(self, done: int) -> None:
        """``done`` steps of the phase are behind us; called every step, so it must be cheap."""

    def preparing(self, what: str, done: int, total: int) -> None:
        """Before a step can be made, ``done`` of ``total`` are there of ``what`` it needs."""

    def values(self, kind: Literal["train", "validation"], values: Mapping[str, float]) -> None:
        """Fresh numbers."""

    def note(self, text: str) -> None:
        """Something worth a line: a stop, a warning, a new phase."""

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave the screen in order."""


class PlainReporter(Reporter):
    """One line every few seconds, for logs and pipes."""

    def __init__(self, stream: IO[str] | None = None, every: float = 5.0) -> None:
        self._stream, self._every = stream or sys.stderr, every
        self._latest: dict[str, str] = {}
        self._prepared = 0.0  # when something was last said of it

    def begin(self, phase: str, done: int, total: int, images_per_step: int) -> None:
        """Start the clock of the phase."""
        self._phase, self._total, self._images = phase, total, images_per_step
        self._first = self._last = (time.monotonic(), done)
        self._latest = {}

    def advance(self, done: int) -> None:
        """Write a line if the last one is old enough, or the phase is over."""
        now = time.monotonic()
        if now - self._last[0] < self._every and done < self._total:
            return
        rate = (done - self._last[1]) / max(now - self._last[0], 1e-9)
        left = (self._total - done) * (now - self._first[0]) / max(done - self._first[1], 1)
        said = "".join(f"  {text}" for text in self._latest.values())
        speed = f"{rate * self._images:.0f} examples/s"
        self._write(f"{self._phase} {done}/{self._total}  {speed}  {clock(left)} left{said}")
        self._last = (now, done)

    def preparing(self, what: str, done: int, total: int) -> None:
        """Write a line if the last one is old enough; of what takes no time nothing is said."""
        now = time.monotonic()
        if done >= total:
            self._prepared = 0.0
        elif not self._prepared:
            self._prepared = now
        elif now - self._prepared >= self._every:
            self._write(f"{what} {done:,}/{total:,}")
            self._prepared = now

    def values(self, kind: Literal["train", "validation"], values: Mapping[str, float]) -> None:
        """Keep the numbers for the next line."""
        self._latest[kind] = brief(values, kind)

    def note(self, text: str) -> None:
        """Write it at once."""
        self._write(text)

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class RichReporter(Reporter):
    """A live bar with rate, time left, loss and the last validation."""

    def __init__(self) -> None:
        self._bar = _bar()
        self._task: TaskID | None = None
        self._prepared: TaskID | None = None
        self._images = 0

    def __enter__(self) -> RichReporter:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def begin(self, phase: str, done: int, total: int, images_per_step: int) -> None:
        """A new bar."""
        self._images = images_per_step
        self._task = self._bar.add_task(phase, total=total, completed=done, **_NO_NUMBERS)

    def advance(self, done: int) -> None:
        """Move the bar; rich draws it four times a second at most."""
        speed = self._bar.tasks[-1].speed
        rate = f"{speed * self._images:.0f} examples/s" if speed else ""
        self._bar.update(self._task, completed=done, rate=rate)  # type: ignore[arg-type]  # a field of the bar

    def preparing(self, what: str, done: int, total: int) -> None:
        """A bar of its own, gone when all is there."""
        if self._prepared is None:
            self._prepared = self._bar.add_task(what, total=total, **_NO_NUMBERS)
        self._bar.update(self._prepared, completed=done)
        if done >= total:
            self._bar.remove_task(self._prepared)
            self._prepared = None

    def values(self, kind: Literal["train", "validation"], values: Mapping[str, float]) -> None:
        """Show the numbers beside the bar."""
        self._bar.update(self._task, **{kind: brief(values, kind)})  # type: ignore[arg-type]  # a field of the bar

    def note(self, text: str) -> None:
        """A line above the bar."""
        self._bar.console.print(text, markup=False, highlight=False)


def _bar() -> Progress:
    """A bar on standard error: description, bar, steps, rate, time left, training and validation."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[train]}"),
        TextColumn("[green]{task.fields[validation]}"),
        console=Console(stderr=True),
        refresh_per_second=4,
    )


def make_reporter(mode: ProgressMode | Reporter) -> Reporter:
    """The reporter for ``mode``, which may be one already; ``auto`` looks whether standard error is a terminal."""
    if isinstance(mode, Reporter):
        return mode
    if mode == "quiet":
        return Reporter()
    if mode == "rich" or (mode == "auto" and sys.stderr.isatty()):
        return RichReporter()
    return PlainReporter()


def brief(values: Mapping[str, float], kind: str) -> str:
    """The few numbers that fit beside a bar, and whose they are: of training the loss, of validation the first three.

    >>> brief({"gradient_norm": 3.0, "loss": 0.25}, "train")
    'train: loss 0.25'
    >>> brief({"accuracy": 0.98765, "loss": 0.5}, "validation")
    'val: accuracy 0.9877, loss 0.5'
    """
    if kind == "train":
        return f"train: loss {values['loss']:.4g}" if "loss" in values else ""
    return "val: " + ", ".join(f"{name} {value:.4g}" for name, value in list(values.items())[:3])


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss.

    >>> clock(3725)
    '1:02:05'
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


class Journal:
    """Tells who watches a run, and writes down what it tells: in the run folder, and as curves for TensorBoard.

    Args:
        folder: of the run.
        reporter: tells who watches.
        writes: whether this process is the one that writes.
        tensorboard: write curves too; needs the extra.
    """

    def __init__(self, folder: RunFolder, reporter: Reporter, *, writes: bool, tensorboard: bool) -> None:
        self._folder, self._reporter, self._writes, self._curves = folder, reporter, writes, writes and tensorboard
        self._board: Any = None

    def say(self, text: str) -> None:
        """A line for who watches, and for log.txt."""
        if self._writes:
            self._folder.log(text)
        self._reporter.note(text)

    def record(
        self,
        kind: Literal["train", "validation"],
        step: int,
        phase: str,
        values: Mapping[str, float],
        seconds: float,
        *,
        replicas: Mapping[str, list[float]] | None,
        rate: float | None = None,
    ) -> None:
        """One line of metrics.jsonl."""
        entry: dict[str, object] = {"step": step, "phase": phase, "kind": kind, "values": values}
        entry |= {} if replicas is None else {"replicas": replicas}
        entry |= {} if rate is None else {"images_per_second": round(rate, 2)}
        if self._writes:
            self._folder.measure({**entry, "seconds": round(seconds, 3)})
        if self._curves:
            if self._board is None:  # a run that is refused before its first step leaves nothing behind
                from torch.utils.tensorboard import SummaryWriter

                self._board = SummaryWriter(self._folder.path / "tensorboard")
            for name, value in values.items():
                self._board.add_scalar(f"{kind}/{name}", value, step)
        self._reporter.values(kind, values)

    def close(self) -> None:
        """Finish the curves."""
        if self._board is not None:
            self._board.close()


class StopRequest:
    """Context manager that turns SIGINT, SIGTERM and a time limit into a request to stop after the present step.

    A second signal does not wait: SIGINT then means KeyboardInterrupt, SIGTERM ends the process.
    """

    def __init__(self, max_minutes: float | None = None) -> None:
        self._deadline = None if max_minutes is None else time.monotonic() + 60 * max_minutes
        self._signalled = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *exception: object) -> None:
        self._restore()

    def reason(self) -> Reason | None:
        """Why to stop now, if at all."""
        if self._signalled:
            return "signal"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "time"
        return None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signalled = True
        self._restore()  # the next signal gets the usual treatment
        with suppress(OSError):  # past Python's buffers, which may be in the middle of a line
            os.write(2, STOPPING)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
