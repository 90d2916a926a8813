"""Progress as JSON lines: what a training in a process of its own tells the process that started it.

Each line is an object with ``event``. The calls of a `Reporter` become events of the same names; ``memory`` says how
much memory the process takes and how much is left. `replay` calls another reporter with what was told.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import IO, Any, Literal

from saccade.engine.progress import Reporter

Event = dict[str, Any]
_SETTLED = 8
"""Steps of a phase after which its memory is known: by then a graph is captured."""


class LineReporter(Reporter):
    """Writes every call as one line of JSON.

    When the reader is gone, it asks its own process to stop, as Ctrl-C does: the run is saved, and no training goes
    on unseen after the process that started it was killed.

    Args:
        stream: where lines go.
        every: least seconds between two lines about steps.
    """

    def __init__(self, stream: IO[str], every: float = 0.25) -> None:
        self._stream, self._every = stream, every
        self._last = {"advance": 0.0, "preparing": 0.0, "memory": 0.0}
        self._total = self._settled = 0

    def begin(self, phase: str, done: int, total: int, images_per_step: int) -> None:
        """Tell the phase."""
        self._total, self._settled = total, done + _SETTLED
        self.emit("begin", phase=phase, done=done, total=total, images_per_step=images_per_step)

    def advance(self, done: int) -> None:
        """Tell the step, if the last one told is old enough or the phase is over."""
        if done >= self._total or self._is_due("advance"):
            self.emit("advance", done=done)
        if done == self._settled:
            self.emit("memory", **memory())

    def preparing(self, what: str, done: int, total: int) -> None:
        """Tell what is prepared, now and then."""
        if done >= total or self._is_due("preparing"):
            self.emit("preparing", what=what, done=done, total=total)

    def values(self, kind: Literal["train", "validation"], values: Mapping[str, float]) -> None:
        """Tell the numbers, and the memory that was needed so far."""
        self.emit("values", kind=kind, values=dict(values))
        if kind == "validation" or self._is_due("memory"):
            self.emit("memory", **memory())

    def note(self, text: str) -> None:
        """Tell it."""
        self.emit("note", text=text)

    def emit(self, event: str, **facts: object) -> None:
        """Write one line."""
        try:
            self._stream.write(json.dumps({"event": event, **facts}) + "\n")
            self._stream.flush()
        except BrokenPipeError:
            self._stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the rest of the process
            signal.raise_signal(signal.SIGTERM)

    def _is_due(self, event: str) -> bool:
        now = time.monotonic()
        if now - self._last[event] < self._every:
            return False
        self._last[event] = now
        return True


def replay(event: Event, reporter: Reporter) -> None:
    """Call ``reporter`` as the run did that told ``event``."""
    facts = {name: value for name, value in event.items() if name != "event"}
    if event["event"] in ("begin", "advance", "preparing", "values", "note"):
        getattr(reporter, event["event"])(**facts)


def memory() -> dict[str, dict[str, int]]:
    """Bytes that this process took at its peak (``used``) and that are free beside it, of the machine and the GPU."""
    found = {}
    host = {"used": _peak_of_process(), "free": _free_of_machine()}
    if all(host.values()):
        found["machine"] = host
    import torch  # the process that listens to events does not need it

    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch has no types here
        found["device"] = {"used": torch.cuda.max_memory_reserved(), "free": torch.cuda.mem_get_info()[0]}
    return found


def _peak_of_process() -> int:
    """0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _free_of_machine() -> int:
    """0 where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = dict(line.split(":", 1) for line in file)
        return int(found["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 0
