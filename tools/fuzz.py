"""``make fuzz``: inputs of all targets for some minutes, each target in a process that is watched.

    python tools/fuzz.py --minutes 10             all targets, two at a time
    python tools/fuzz.py --target recipes          one of them
    python tools/fuzz.py --target recipes --only 7 one input, with its traceback

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
TESTS = HERE.parent / "tests"
START_SECONDS = 180.0
"""For a process to import torch and make its first files."""


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
    """Megabytes that one input added at most."""
    findings: dict[str, list[str]] = field(default_factory=dict)
    """What was found by its last line; the same again is counted."""

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong and something was tried."""
        return bool(self.inputs) and not (self.tracebacks or self.late or self.large)

    def found(self, text: str) -> None:
        """Keep one finding."""
        lines = text.splitlines()
        places = [line for line in lines if "/saccade/" in line]
        self.findings.setdefault(f"{places[-1] if places else ''} {lines[-1]}"[:300], []).append(text)


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
    command = [sys.executable, str(HERE / "fuzz_worker.py"), target.home, str(folder), "--seed", str(seed)]
    command += ["--first", str(first), "--seconds", str(seconds)] + ([] if only is None else ["--only", str(only)])
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    log = (folder / "log.txt").open("wb")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, env=env)
    lines: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_forward, args=(process, lines), daemon=True).start()
    number, name, base, began = first, "the start", -1, time.monotonic()  # −1: before the first input
    try:
        while True:
            said = _next_line(lines, 0.05)
            if said is None:  # the process has ended
                tally.inputs += base >= 0
                tally.tracebacks += 1
                tally.found(f"{name} (input {number}) ended the process with {process.wait()}: {_tail(folder)}")
                break
            if not said:
                waited, grown = time.monotonic() - began, _resident(process.pid) - base if base >= 0 else 0
                if waited > (START_SECONDS if base < 0 else 4 * target.deadline) or grown > target.memory:
                    tally.inputs += base >= 0
                    _note_limit(tally, target, name, number, waited, grown)
                    break
            elif "begin" in said:
                number, name, base, began = said["begin"], said["name"], said["resident"], time.monotonic()
            elif "end" in said:
                _count(tally, target, said)
            elif "done" in said:
                return -1
        return number + 1 if base >= 0 and only is None else -1
    finally:
        process.kill()
        process.wait()
        log.close()


def _count(tally: Tally, target: Watched, said: dict[str, Any]) -> None:
    """Note one outcome."""
    number, result = said["end"], said["result"]
    tally.inputs += 1
    tally.refused += result == "refused"
    tally.accepted += result == "accepted"
    tally.slowest, tally.grown = max(tally.slowest, said["cpu"]), max(tally.grown, said["grown"])
    again = f"--target {target.name!r} --only {number}"
    if result == "traceback":
        tally.tracebacks += 1
        tally.found(f"{said['name']} ({again})\n{said['told'].rstrip()}")
    if said["cpu"] > target.deadline:
        tally.late += 1
        tally.found(f"{said['name']} ({again}) took {said['cpu']:.1f} s, {target.deadline:g} are allowed")
    if said["grown"] > target.memory:
        tally.large += 1
        tally.found(f"{said['name']} ({again}) took {said['grown']} MB, {target.memory} are allowed")


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
        "  ".join(
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        )
        for row in (head, *rows)
    )


def main() -> int:
    """The command."""
    sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS)]
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
        for texts in tally.findings.values():
            again = f" ({len(texts) - 1} more like it)" if len(texts) > 1 else ""
            print(f"{tally.target}: {texts[0]}{again}\n")
    print(table(tallies))
    return 0 if all(tally.is_good for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
