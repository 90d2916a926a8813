"""Stopping cleanly: signals and a time limit, noticed between two steps."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any, Literal

Reason = Literal["time", "signal"]
STOPPING = b"\nstopping after the step or validation under way; a second signal ends it at once\n"


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
