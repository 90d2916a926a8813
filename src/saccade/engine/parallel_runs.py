"""Trains several runs at the same time, each in a process of its own, so that each is what it would be alone.

A child imports what it needs and then waits; it begins to train, and to write, when it is told to. So all of them get
ready while the first one trains its first steps, and nothing is written before everything was checked.

What a child tells on its standard output are events (`saccade.engine.event_lines`); what it writes to its standard
error goes into a log. A child that ends does not end the others. One that runs out of memory beside others is run again
alone, once, when the others are done.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from saccade.atomic import make_folder, writing
from saccade.engine.concurrency import Concurrency
from saccade.engine.event_lines import Event
from saccade.engine.stop import Reason, StopRequest

State = Literal["waiting", "running", "finished", "stopped", "failed"]
_OUT_OF_MEMORY = ("out of memory", "OutOfMemoryError", "ALLOC_FAILED", "MemoryError")
_BESIDE_OTHERS = ("CUDA error", "CUDNN_STATUS", "CUBLAS_STATUS")
"""With CUDA MPS a fault of one process can end others on the same GPU; who was hit by it says one of these."""
_REMEMBERED = 200  # lines of a log
_SIGKILL = -9  # how the kernel ends a process when the machine has no memory left
_LAST_WORDS = 5.0  # seconds for what an ended child has told; a process that it left behind may hold the pipe forever
REFUSED = 2
"""Exit code of a child whose input was refused, or whose training broke; it has told why."""


@dataclass
class Run:
    """One training: what it is told, where it stands, how it ended."""

    name: str
    recipe: str
    """Runs of the same recipe are taken to need the same memory."""
    folder: Path
    log: Path
    state: State = "waiting"
    attempts: int = 0
    alone: bool = False
    """Whether it waits until nothing else runs."""
    result: dict[str, Any] | None = None
    """The fields of its `RunResult`, as it told them."""
    error: str | None = None
    used: dict[str, int] = field(default_factory=dict)
    """Bytes at the peak, of the machine and of the device."""

    @property
    def is_begun(self) -> bool:
        """Whether there is something on disk to go on with."""
        return (self.folder / "config.yaml").is_file()


class _Child:
    """A process that is ready to train one run."""

    def __init__(
        self, run: Run, command: Sequence[str], environment: dict[str, str], events: queue.Queue[object]
    ) -> None:
        self.run = run
        self.is_told = False
        self.is_refused = False  # it has told why, and is about to end
        self.said: list[str] = []
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(  # noqa: S603
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C on a terminal reaches the parent alone, which tells the children
        )
        streams = (self.process.stdout, self.process.stderr)
        self._readers = [threading.Thread(target=self._read, args=(each, events), daemon=True) for each in streams]
        for reader in self._readers:
            reader.start()
        threading.Thread(target=self._wait, args=(events,), daemon=True).start()

    def send(self, value: object) -> None:
        """Send one line; a child that has ended is found out by its exit code."""
        with suppress(OSError, ValueError):
            self._stdin.write(json.dumps(value) + "\n")
            self._stdin.flush()

    def leave(self) -> None:
        """Let a child that waits end: there is nothing for it to do."""
        with suppress(OSError, ValueError):
            self._stdin.close()

    def keep_log(self, line: str) -> None:
        """Append a line to the log of the run, if it has begun: before, nothing is written."""
        self.said = [*self.said[1 - _REMEMBERED :], line]
        if self.is_told:
            self.write_log([line])

    def write_log(self, lines: Sequence[str]) -> None:
        make_folder(self.run.log.parent)
        with writing(self.run.log), open(self.run.log, "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    @property
    def _stdin(self) -> IO[str]:
        stream = self.process.stdin
        if stream is None:
            raise ValueError("the child was started without a pipe")
        return stream

    def _read(self, stream: IO[str] | None, events: queue.Queue[object]) -> None:
        is_event = stream is self.process.stdout
        for line in stream or ():
            text = line.rstrip("\n")
            if not is_event:
                events.put((self, "log", text))
                continue
            try:
                events.put((self, "event", json.loads(text)))
            except ValueError:  # a library that prints
                events.put((self, "log", text))

    def _wait(self, events: queue.Queue[object]) -> None:
        code = self.process.wait()
        until = time.monotonic() + _LAST_WORDS
        for reader in self._readers:
            reader.join(max(0.0, until - time.monotonic()))
        events.put((self, "end", code))


class ParallelRuns:
    """Runs, and the processes that train them.

    Args:
        runs: what is to be trained; those that are not "waiting" are left alone.
        command: starts a child.
        job: the first line that a child is told.
        environment: variables of every child, besides those of this process.
        on_event: called with a run (None: all of them) and an event.
        changed: called when the state of a run changed.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        command: Sequence[str],
        job: Callable[[Run], dict[str, object]],
        environment: dict[str, str],
        on_event: Callable[[Run | None, Event], None],
        changed: Callable[[], None],
    ) -> None:
        self.runs = list(runs)
        self._command, self._job, self._on_event, self._changed = list(command), job, on_event, changed
        self._environment = {**os.environ, **environment}
        self._events: queue.Queue[Any] = queue.Queue()
        self._children: dict[str, _Child] = {}
        self._deadline: float | None = None
        self._is_out_of_time = False
        self._device = "auto"

    def start_children(self, most: int) -> None:
        """Start the children of the first ``most`` runs; they import and wait."""
        for run in [run for run in self.runs if run.state == "waiting"][:most]:
            self._child(run)

    def train(self, at_once: Concurrency, device: str, max_minutes: float | None = None) -> Reason | None:
        """Train what waits on ``device``, as many ``at_once`` as that allows; why it ended early, if it did."""
        self.at_once, self._device = at_once, device
        self._deadline = None if max_minutes is None else time.monotonic() + 60 * max_minutes
        is_passed_on = False
        with StopRequest(max_minutes) as stop:
            while True:
                reason = stop.reason() or ("time" if self._is_out_of_time else None)
                if reason is None:
                    self._begin_what_may()
                if reason == "signal" and not is_passed_on:
                    is_passed_on = True
                    for child in self._training():
                        child.process.terminate()
                for child in [] if reason is None else self._children.values():
                    if not child.is_told:
                        child.leave()
                if not self._children:
                    is_cut_short = any(run.state in ("waiting", "stopped") for run in self.runs)
                    return reason or "signal" if is_cut_short else None  # a child may be stopped by itself
                self._handle_events()

    def end(self) -> None:
        """End every process at once; those that train keep their last checkpoint."""
        for child in self._children.values():
            child.process.kill()
        for child in self._children.values():
            child.process.wait()

    def _begin_what_may(self) -> None:
        for run in self.runs:
            ready = self._children.get(run.name)
            if run.state != "waiting" or (ready is not None and ready.is_refused):
                continue
            running = [child.run for child in self._training()]
            if run.alone:
                if any(not other.alone and other.state == "waiting" for other in self.runs) or running:
                    continue
            elif any(each.alone for each in running) or not self.at_once.may_begin(
                run.recipe, [each.recipe for each in running]
            ):
                continue
            self._begin(run)

    def _begin(self, run: Run) -> None:
        child = self._children.get(run.name) or self._child(run)
        child.is_told = True
        run.state, run.attempts, run.error, run.result = "running", run.attempts + 1, None, None
        if child.said:
            child.write_log(child.said)
        left = None if self._deadline is None else max((self._deadline - time.monotonic()) / 60, 1e-9)
        child.send({"device": self._device, "max_minutes": left})
        self._changed()

    def _child(self, run: Run) -> _Child:
        child = _Child(run, self._command, self._environment, self._events)
        self._children[run.name] = child
        child.send(self._job(run))
        return child

    def _training(self) -> list[_Child]:
        return [child for child in self._children.values() if child.is_told]

    def _handle_events(self) -> None:
        """Wait for an event, then take all there are."""
        try:
            self._handle(*self._events.get(timeout=0.2))
            while True:
                self._handle(*self._events.get_nowait())
        except queue.Empty:
            return

    def _handle(self, child: _Child, kind: str, what: Any) -> None:
        if kind == "log":
            child.keep_log(what)
        elif kind == "end":
            self._ended(child, what)
        else:
            self._told(child, what)

    def _told(self, child: _Child, event: Event) -> None:
        run = child.run
        if event["event"] == "result":
            run.result = {name: value for name, value in event.items() if name != "event"}
        elif event["event"] == "refused":
            run.error, child.is_refused = event["text"], True
            child.keep_log(f"error: {event['text']}")
        elif event["event"] == "memory":
            found = {kind: each for kind, each in event.items() if kind != "event"}
            run.used.update({kind: each["used"] for kind, each in found.items()})
            if self.at_once.measured(run.recipe, found):
                self._say(f"{self.at_once.limit} at once: {self.at_once.why}")
        self._on_event(run, event)

    def _ended(self, child: _Child, code: int) -> None:
        run = child.run
        beside = len(self._training()) - 1
        del self._children[run.name]
        child.leave()
        if not child.is_told and code == 0:
            return  # it was sent away while it waited
        result = run.result
        if code == 0 and result is not None:
            run.state = "finished" if result["stopped"] in ("finished", "early") else "stopped"
            self._is_out_of_time |= result["stopped"] == "time"
        elif code == -15:  # it was told to stop while it was still getting ready
            run.state = "stopped"
        elif self._is_lack_of_memory(child, code) and beside > 0 and not run.alone:
            run.state, run.alone = "waiting", True
            self.at_once.too_many(beside + 1)
            self._say(f"{run.name} ran out of memory beside {beside} other{'s' * (beside > 1)}; it is run again alone")
        else:
            run.state = "failed"
            if not child.is_told:
                child.write_log(child.said)
            run.error = run.error or next((line for line in reversed(child.said) if line.strip()), f"exit code {code}")
            self._on_event(run, {"event": "note", "text": f"failed: {run.error}"})
        self._changed()

    def _is_lack_of_memory(self, child: _Child, code: int) -> bool:
        text = "\n".join([*child.said[-20:], child.run.error or ""])
        return code == _SIGKILL or any(sign in text for sign in (*_OUT_OF_MEMORY, *_BESIDE_OTHERS))

    def _say(self, text: str) -> None:
        self._on_event(None, {"event": "note", "text": text})
