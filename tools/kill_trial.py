"""One trial of ``tools/kill.py``: start a target in a forked process, kill it, run it again, compare what is there.

A fork of a process that has imported torch starts in milliseconds, a fresh interpreter in seconds. The parent imports
and does nothing else, so it has no threads that a fork would lose.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.errors import SaccadeError

CALLS = ("fsync", "replace", "rename")
"""Functions of os at which a process is killed: what they do decides what is on the disk."""
DEADLINE = 180.0
"""Seconds after which a process that should end by itself counts as hanging."""

_TIMES = {"seconds", "minutes", "images_per_second"}
_NOT_COMPARED = {"log.txt"}  # times of day
_MAY_BE_MISSING = {"contents.index"}  # digests of files that were not changed within the last second


@dataclass(frozen=True)
class Point:
    """When a process is killed."""

    call: int = 0
    """Just before (negative: just after) this call of :data:`CALLS`, counted from 1; 0: not at a call."""
    seconds: float | None = None
    """After this time; None: not by time."""

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"after {self.seconds:.3f} s"
        return f"{'before' if self.call > 0 else 'after'} call {abs(self.call)}"


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    how: str
    """whole, killed, said (an error of saccade: one line), broken (anything else), hung."""
    text: str = ""
    calls: int = 0
    """Calls of :data:`CALLS` that it made, where it ended by itself."""
    seconds: float = 0.0


def in_child(work: Callable[[], None], note: Path, point: Point | None = None) -> Ended:
    """Run ``work`` in a forked process that is killed at ``point``; ``note`` is a file for what it has to say."""
    note.unlink(missing_ok=True)
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _child(work, note, point)
    deadline = started + (DEADLINE if point is None or point.seconds is None else point.seconds)
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            break
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            is_meant = point is not None and point.seconds is not None
            return Ended("killed" if is_meant else "hung", seconds=time.monotonic() - started)
        time.sleep(0.002)
    seconds = time.monotonic() - started
    if os.WIFSIGNALED(status):
        is_kill = os.WTERMSIG(status) == signal.SIGKILL
        return Ended("killed" if is_kill else "broken", f"signal {os.WTERMSIG(status)}", seconds=seconds)
    if not note.is_file():
        return Ended("broken", "it left no word", seconds=seconds)
    return Ended(**json.loads(note.read_text(encoding="utf-8")), seconds=seconds)


def _child(work: Callable[[], None], note: Path, point: Point | None) -> None:
    """What the forked process does; it does not return."""
    how, text, calls = "broken", "", [0]
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        if "torch" in sys.modules:  # its pool of threads does not live through a fork; it is made anew here, once
            sys.modules["torch"].set_num_threads(1)
        _kill_at_calls(calls, point.call if point is not None else 0)
        try:
            work()
            how = "whole"
        except SaccadeError as error:
            how, text = "said", " ".join(str(error).split())
        except BaseException:
            text = traceback.format_exc()
        note.write_text(json.dumps({"how": how, "text": text, "calls": calls[0]}), encoding="utf-8")
    finally:
        os._exit(0)


def _kill_at_calls(calls: list[int], wanted: int) -> None:
    """Count the calls of :data:`CALLS`, and let this process kill itself at the one that is wanted."""

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            calls[0] += 1
            number = calls[0]
            if number == wanted:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*given, **named)
            if number == -wanted:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


def state_of(folder: Path) -> dict[str, str]:
    """Every file below ``folder`` with a digest of what must not depend on when and where it was made."""
    return {path.relative_to(folder).as_posix(): _digest(path, str(folder).encode()) for path in _files(folder)}


def differences(first: dict[str, str], second: dict[str, str]) -> list[str]:
    """In words, which files of ``second`` are not as in ``first``."""
    missing = [f"{name} is missing" for name in first if name not in second]
    more = [f"{name} is left over" for name in second if name not in first]
    return [*missing, *more, *(f"{name} differs" for name in first if second.get(name, first[name]) != first[name])]


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            if path.name not in _MAY_BE_MISSING:
                yield path
        elif not any(path.iterdir()):
            yield path  # an empty folder is something too


def _digest(path: Path, place: bytes) -> str:
    if path.is_dir():
        return "folder"
    if path.name in _NOT_COMPARED:
        return "not compared"
    content = path.read_bytes().replace(place, b"PLACE")
    with contextlib.suppress(ValueError):
        if path.suffix == ".json":
            content = json.dumps(_timeless(json.loads(content))).encode()
        elif path.suffix == ".jsonl":
            content = json.dumps([_timeless(json.loads(line)) for line in content.splitlines()]).encode()
        elif path.suffix == ".md":
            content = re.sub(rb"(minutes|seconds): `[\d.]+`", rb"\1", content)
    return hashlib.sha256(content).hexdigest()


def _timeless(value: Any) -> Any:
    """Plain values without what was measured by a clock, and without the digest of facts that hold such."""
    if isinstance(value, dict):
        kept = {key: _timeless(each) for key, each in value.items() if key not in _TIMES}
        if isinstance(kept.get("sha256"), dict):
            kept["sha256"].pop("facts", None)
        return kept
    return [_timeless(each) for each in value] if isinstance(value, list) else value
