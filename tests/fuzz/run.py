"""``make fuzz``: inputs of all targets for some minutes, each target in a process that is watched.

    python tests/fuzz/run.py --minutes 10             all targets, two at a time
    python tests/fuzz/run.py --target recipes          one of them
    python tests/fuzz/run.py --target recipes --only 7 one input, with its traceback

An input that computes longer than its target's deadline, that stands still four times as long, or that adds more memory
than its target's bound is named; its process is ended and the next one goes on behind it. Ends with 1 if there is any
traceback, input over the deadline or input over the bound.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
START_SECONDS = 180.0
"""For a process to import torch and make its first files."""
KEPT = 40
"""Findings of one target; more are counted."""


@dataclass
class Tally:
    """What became of the inputs of one target."""

    target: str
    inputs: int = 0
    refused: int = 0
    accepted: int = 0
    tracebacks: int = 0
    late: int = 0
    large: int = 0
    slowest: float = 0.0
    """Seconds of computing."""
    grown: int = 0
    """Megabytes that the process grew by."""
    findings: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong and something was tried."""
        return bool(self.inputs) and not (self.tracebacks or self.late or self.large)

    def found(self, text: str) -> None:
        """Keep one finding."""
        if len(self.findings) < KEPT:
            self.findings.append(text)


@dataclass(frozen=True)
class Watched:
    """What the watcher has to know of a target."""

    name: str
    home: str
    """MODULE:CLASS."""
    deadline: float
    memory: int


def watched(name: str, target: type) -> Watched:
    """The facts of a target class."""
    return Watched(name, f"{target.__module__}:{target.__name__}", target.deadline, target.memory)


def fuzz(target: Watched, seconds: float, seed: int, only: int | None = None) -> Tally:
    """Run one target for ``seconds``, in as many processes as it takes."""
    tally, end, first = Tally(target.name), time.monotonic() + seconds, 0
    while first >= 0 and (time.monotonic() < end or not tally.inputs):
        left = max(1.0, end - time.monotonic())
        folder = Path(tempfile.mkdtemp(prefix="saccade-fuzz-"))
        try:
            first = _one_process(target, tally, folder, seed, first, left, only)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return tally


def _one_process(
    target: Watched, tally: Tally, folder: Path, seed: int, first: int, seconds: float, only: int | None
) -> int:
    """Run inputs from ``first`` on; the number to go on from, or −1 at the end."""
    command = [sys.executable, str(HERE / "worker.py"), target.home, str(folder), "--seed", str(seed)]
    command += ["--first", str(first), "--seconds", str(seconds)] + ([] if only is None else ["--only", str(only)])
    log = (folder / "log.txt").open("wb")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
    lines: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_forward, args=(process, lines), daemon=True).start()
    number, name, base, began = first, "the start", None, time.monotonic()
    try:
        while True:
            said = _next_line(lines, 0.05)
            if said is None:  # the process has ended
                code = process.wait()
                tally.tracebacks += 1
                tally.found(f"{name} (input {number}) ended the process with {code}: {_tail(folder)}")
                tally.inputs += base is not None
                return number + 1 if base is not None and only is None else -1
            if not said:
                waited = time.monotonic() - began
                limit = START_SECONDS if base is None else 4 * target.deadline
                grown = 0 if base is None else _resident(process.pid) - base
                if waited > limit or grown > target.memory:
                    tally.inputs += base is not None
                    _note_limit(tally, target, name, number, waited, grown)
                    return number + 1 if base is not None and only is None else -1
            elif "corpus" in said:
                base, began = said["memory"], time.monotonic()
            elif "begin" in said:
                number, name, began = said["begin"], said["name"], time.monotonic()
            elif "done" in said:
                return -1
            else:
                _count(tally, target, said, base or 0)
                if said["memory"] - (base or 0) > target.memory:  # start anew: the largest memory does not go down
                    return number + 1 if only is None else -1
    finally:
        process.kill()
        process.wait()
        log.close()


def _count(tally: Tally, target: Watched, said: dict[str, Any], base: int) -> None:
    """Note one outcome."""
    number, result = said["end"], said["result"]
    tally.inputs += 1
    tally.refused += result == "refused"
    tally.accepted += result == "accepted"
    tally.slowest, tally.grown = max(tally.slowest, said["cpu"]), max(tally.grown, said["memory"] - base)
    again = f"--target {target.name!r} --only {number}"
    if result == "traceback":
        tally.tracebacks += 1
        tally.found(f"{said['name']} ({again})\n{said['told'].rstrip()}")
    if said["cpu"] > target.deadline:
        tally.late += 1
        tally.found(f"{said['name']} ({again}) took {said['cpu']:.1f} s, {target.deadline:g} are allowed")
    if said["memory"] - base > target.memory:
        tally.large += 1
        tally.found(f"{said['name']} ({again}) took {said['memory'] - base} MB, {target.memory} are allowed")


def _note_limit(tally: Tally, target: Watched, name: str, number: int, waited: float, grown: int) -> None:
    again = f"--target {target.name!r} --only {number}"
    if grown > target.memory:
        tally.large += 1
        tally.found(f"{name} ({again}) took {grown} MB, {target.memory} are allowed; ended")
    else:
        tally.late += 1
        tally.found(f"{name} ({again}) had not ended after {waited:.0f} s; ended")


def _forward(process: subprocess.Popen[bytes], lines: queue.Queue[bytes | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def _next_line(lines: queue.Queue[bytes | None], seconds: float) -> dict[str, Any] | None:
    """What the process said; empty where it said nothing yet, None where it never will again."""
    try:
        line = lines.get(timeout=seconds)
    except queue.Empty:
        return {}
    if line is None:
        return None
    found: dict[str, Any] = json.loads(line)
    return found


def _resident(pid: int) -> int:
    """Megabytes that a process has in memory; 0 where that cannot be told."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def _tail(folder: Path) -> str:
    try:
        return (folder / "log.txt").read_text(errors="replace")[-1500:]
    except OSError:
        return ""


def table(tallies: Sequence[Tally]) -> str:
    """All targets side by side."""
    head = ("target", "inputs", "refused", "accepted", "tracebacks", "late", "too large", "slowest", "memory")
    rows = [
        (t.target, f"{t.inputs:,}", f"{t.refused:,}", f"{t.accepted:,}", str(t.tracebacks), str(t.late), str(t.large),
         f"{t.slowest:.1f} s", f"+{t.grown} MB") for t in tallies
    ]  # fmt: skip
    together = ("all", *(f"{sum(getattr(t, key) for t in tallies):,}" for key in
                         ("inputs", "refused", "accepted", "tracebacks", "late", "large")), "", "")  # fmt: skip
    rows.append(together)
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) if not column else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths)))
        for row in (head, *rows)
    )


def main() -> int:
    """The command."""
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    from targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together (10)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=list(TARGETS), action="append", help="one target; may be repeated")
    parser.add_argument("--only", type=int, help="one input of one target, by its number")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="targets at a time (2)")
    options = parser.parse_args()
    names = options.target or list(TARGETS)
    if options.only is not None and len(names) != 1:
        parser.error("--only goes with one --target")
    jobs = min(options.jobs, len(names))
    seconds = options.minutes * 60 * jobs / len(names)
    with ThreadPoolExecutor(jobs) as pool:
        chosen = [watched(name, TARGETS[name]) for name in names]
        tallies = list(pool.map(lambda each: fuzz(each, seconds, options.seed, options.only), chosen))
    for tally in tallies:
        for finding in tally.findings:
            print(f"{tally.target}: {finding}\n")
    print(table(tallies))
    return 0 if all(tally.is_good for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
