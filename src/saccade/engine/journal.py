"""Progress of a run on a terminal and in files, and requests to stop it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import FrameType
from typing import Any, Literal

from saccade.engine.loggers import Logger, close_logger
from saccade.engine.run_folder import RunFolder
from saccade.errors import ConfigError

Kind = Literal["train", "validation"]
Reason = Literal["time", "signal"]
STOPPING = b"\nstopping after the step or validation under way; a second signal ends it at once\n"
ProgressMode = Literal["auto", "rich", "plain", "quiet"]
EVERY = 5.0  # Seconds between two lines where there is no bar.


class Journal:
    """Shows how a run goes and writes it down, in the run folder and by ``loggers``.

    ``mode`` is a bar (rich), a line every few seconds (plain), nothing, or ``auto``. One process ``writes``; the others
    are quiet.
    """

    def __init__(self, folder: RunFolder, mode: ProgressMode, *, writes: bool, loggers: Sequence[Logger] = ()) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._folder, self._writes, self._loggers = folder, writes, list(loggers)
        is_quiet = mode == "quiet" or not writes
        has_bar = mode == "rich" or (mode == "auto" and sys.stderr.isatty())
        self._console = Console(stderr=True, quiet=is_quiet, emoji=False)
        self._has_lines = not is_quiet and not has_bar
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[train]}"),
            TextColumn("[green]{task.fields[validation]}"),
            console=self._console,
            refresh_per_second=4,
            disable=is_quiet or not has_bar,  # it still keeps count
        )
        self._numbers: dict[str, Any] = {"rate": "", "train": "", "validation": ""}
        self._said = time.monotonic()

    def __enter__(self) -> Journal:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self._bar.stop()
        for logger in self._loggers:
            try:
                close_logger(logger, "finished" if kind is None else "failed")
            except Exception as error:  # the run is whole without it
                self.say(f"warning: {_failed(logger, error)}")

    def start_loggers(self, settings: Mapping[str, Any]) -> None:
        """Tell the loggers that a run with these ``settings`` begins."""
        for logger in self._loggers:
            try:
                logger.start(self._folder.path, settings)
            except Exception as error:  # each has its own
                raise ConfigError(f"{_failed(logger, error)}; set it up, or train without it") from error

    def begin(self, phase: str, done: int, total: int, examples_per_step: int) -> None:
        """A phase starts (or goes on) at step ``done`` of ``total``."""
        self._examples, self._total = examples_per_step, total
        self._numbers = dict.fromkeys(self._numbers, "")
        self._task = self._bar.add_task(phase, total=total, completed=done, **self._numbers)
        self._last = (time.monotonic(), done)
        self._began: tuple[float, int] | None = None  # when the first step was done, which takes longer than the others

    def advance(self, done: int) -> None:
        """``done`` steps of the phase are behind us; called every step, so it must be cheap."""
        now = time.monotonic()
        self._began = self._began or (now, done)
        seconds, steps = now - self._last[0], done - self._last[1]
        if seconds >= EVERY or done == self._total:
            self._last = (now, done)
            self._numbers["rate"] = f"{steps * self._examples / max(seconds, 1e-9):.0f} examples/s"
            since, timed = now - self._began[0], done - self._began[1]
            left = since / max(timed, 1) * (self._total - done)
            if self._has_lines:
                rate, *values = (text for text in self._numbers.values() if text)
                place = f"{self._bar.tasks[-1].description} {done}/{self._total}"
                times = [f"{timedelta(seconds=round(left))} left"] if timed or done == self._total else []
                self._print("  ".join([place, rate, *times, *values]))
        self._bar.update(self._task, completed=done, **self._numbers)

    def preparing(self, what: str, done: float, total: float | None) -> None:
        """Before a step can be made, ``done`` of ``total`` are there of ``what`` it needs."""
        now = time.monotonic()
        if done < (total or 0) and now - self._said >= EVERY:
            self._said = now
            self._print(f"{what} {done:,}/{total:,}")

    def say(self, text: str) -> None:
        """A line for who watches, and for log.txt."""
        if self._writes:
            self._folder.log(text)
        self._print(text)

    def record(
        self,
        kind: Kind,
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
        curves = {f"{kind}/{name}": value for name, value in values.items()}
        for logger in list(self._loggers) if self._writes else ():
            try:
                logger.log(curves, step)
            except Exception as error:  # a service that does not answer must not end a day of training
                self._loggers.remove(logger)
                self.say(f"warning: {_failed(logger, error)}; training goes on without it")
                with suppress(Exception):
                    close_logger(logger, "failed")
        self._numbers[kind] = brief(values, kind)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _failed(logger: Logger, error: Exception) -> str:
    reason = " ".join(str(error).split())[:200]
    return f"the logger {type(logger).__name__} failed ({type(error).__name__}: {reason})"


def brief(values: Mapping[str, float], kind: Kind) -> str:
    """The few numbers that fit beside a bar, and whose they are: of training the loss, of validation the first three.

    >>> brief({"gradient_norm": 3.0, "loss": 0.25}, "train")
    'train: loss 0.25'
    >>> brief({"accuracy": 0.98765, "loss": 0.5}, "validation")
    'val: accuracy 0.9877, loss 0.5'
    """
    if kind == "train":
        return f"train: loss {values['loss']:.4g}" if "loss" in values else ""
    return "val: " + ", ".join(f"{name} {value:.4g}" for name, value in list(values.items())[:3])


class StopRequest:
    """Context manager that turns SIGINT, SIGTERM and a time limit into a request to stop after the present step.

    A second signal stops at once.
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
