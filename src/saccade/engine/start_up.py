"""Where the time goes before a run trains at its full speed: one line in its log.

``start-up 5.8 s: imports 2.1, model 0.2, CUDA 0.9, data 0.4, first batch 0.8, first steps 1.2``. It ends with the first
step that is like all later ones: on a GPU with ``graph: true`` the first replay of the captured step.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_command: list[float] = []  # when the command began that waits for its training to start


def command_began() -> None:
    """The process is one command: its start-up counts from the start of the process."""
    _command[:] = [time.monotonic() - _age_of_process()]


class StartUp:
    """A clock that says what each second of the start was spent on; it runs from now, or from the command's start."""

    def __init__(self) -> None:
        self._began = self._last = _command.pop() if _command else time.monotonic()
        self._parts: dict[str, float] = {}

    def lap(self, what: str) -> None:
        """All that passed since the last call was spent on ``what``."""
        now = time.monotonic()
        self._parts[what] = self._parts.get(what, 0.0) + now - self._last
        self._last = now

    @property
    def parts(self) -> dict[str, float]:
        """Seconds by what they were spent on, in the order of the first mention."""
        return dict(self._parts)

    @property
    def seconds(self) -> float:
        """From the start to the last call of `lap`."""
        return self._last - self._began

    def __str__(self) -> str:
        parts = ", ".join(f"{what} {seconds:.1f}" for what, seconds in self._parts.items() if seconds >= 0.05)
        return f"start-up {self.seconds:.1f} s" + (f": {parts}" if parts else "")


def _age_of_process() -> float:
    """Seconds since the process was started; 0 where the system does not say."""
    try:
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])  # in ticks since boot
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
