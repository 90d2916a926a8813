"""``make fuzz``: inputs of all targets for some minutes, each target in processes that are watched.

    python tools/fuzz.py --minutes 10             all targets, two at a time
    python tools/fuzz.py --target recipes          one of them
    python tools/fuzz.py --target recipes --only 7 one input, with its traceback

A process hands over one input after the other and says before and after each what became of it. An input that computes
longer than its target's deadline, that stands still four times as long, or that adds more memory than its target's
bound is named; where it ended its process, the next one goes on behind it. Ends with 1 if anything is named.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"
START_SECONDS = 180
"""For a process to import torch and make its first files."""
COUNTED = ("inputs", "refused", "accepted", "traceback", "late", "large")


@dataclass
class Tally:
    """What became of the inputs of one target."""

    target: str
    counts: Counter[str] = field(default_factory=Counter)
    """By :data:`COUNTED`."""
    findings: dict[str, list[str]] = field(default_factory=dict)
    """What was found by its last line; the same again is counted."""

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong and something was tried."""
        return bool(self.counts["inputs"]) and not self.findings

    def found(self, kind: str, text: str) -> None:
        """Keep one finding."""
        self.counts[kind] += 1
        lines = text.splitlines()
        place = next((line for line in reversed(lines) if "/saccade/" in line), "")
        self.findings.setdefault(f"{place} {lines[-1]}"[:300], []).append(text)


def fuzz(name: str, home: str, seconds: float, seed: int = 0, only: int | None = None) -> Tally:
    """Run one target, ``home`` is its MODULE:CLASS, for ``seconds``, in as many processes as it takes."""
    tally, end, first = Tally(name), time.monotonic() + seconds, only or 0
    while first >= 0 and (time.monotonic() < end or not tally.counts["inputs"]):
        command = [sys.executable, __file__, "--worker", home, "--seed", str(seed), "--first", str(first)]
        command += ["--seconds", str(max(1.0, end - time.monotonic()))] + (["--one"] if only is not None else [])
        with tempfile.TemporaryDirectory(prefix="saccade-fuzz-") as folder, Path(folder, "log").open("wb") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment)
            began: dict[str, Any] = {}
            for line in process.stdout or ():
                said = json.loads(line)
                if "result" in said:
                    _count(tally, {**began, **said})
                began = {} if "result" in said else said
            ended = process.wait()
            if ended == 0 or not began:
                first = -1
                if ended:
                    tally.found("traceback", f"no input could be made: {Path(folder, 'log').read_text()[-1500:]}")
                continue
            tally.counts["inputs"] += 1
            kind = {-signal.SIGALRM: "late", -signal.SIGXCPU: "late"}.get(ended, "traceback")
            told = Path(folder, "log").read_text(errors="replace")[-1500:]
            text = f"{began['name']} (--target {name!r} --only {began['begin']}) ended its process with {ended}: {told}"
            tally.found(kind, text)
            first = began["begin"] + 1 if only is None else -1
    return tally


def _count(tally: Tally, said: dict[str, Any]) -> None:
    """Note one outcome."""
    tally.counts["inputs"] += 1
    name = f"{said['name']} (--target {tally.target!r} --only {said['begin']})"
    if said["result"] == "traceback":
        tally.found("traceback", f"{name}\n{said['told'].rstrip()}")
    else:
        tally.counts[said["result"]] += 1
    if said["seconds"] > said["deadline"]:
        tally.found("late", f"{name} took {said['seconds']:.1f} s, {said['deadline']:g} are allowed")
    if said["grown"] > said["memory"]:
        tally.found("large", f"{name} took {said['grown']} MB, {said['memory']} are allowed")


def work(home: str, seed: int, first: int, seconds: float, one: bool) -> None:
    """What a process does: inputs from ``first`` on until there is no time left; a line before and after each."""
    from fuzzing import Inputs

    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what an input prints is not ours
    signal.alarm(START_SECONDS)
    end = time.monotonic() + seconds
    module, _, name = home.partition(":")
    with tempfile.TemporaryDirectory(prefix="saccade-fuzz-") as folder:
        target = getattr(importlib.import_module(module), name)(Path(folder))
        inputs = Inputs(target, seed)
        for number in [first] if one else itertools.count(first):
            if time.monotonic() > end and number > first:
                return
            called = inputs.corpus[number][0] if number < len(inputs.corpus) else f"drawn {number}"
            print(json.dumps({"begin": number, "name": called}), file=said, flush=True)
            signal.setitimer(signal.ITIMER_REAL, 4 * target.deadline)
            _bound(8 * target.memory)
            before, busy = _peak(reset=True), time.process_time()
            outcome = inputs.outcome(number)
            facts = {"seconds": time.process_time() - busy, "grown": _peak() - before}
            signal.setitimer(signal.ITIMER_REAL, 0)
            facts |= {"deadline": target.deadline, "memory": target.memory, "told": outcome.told[-4000:]}
            print(json.dumps({"result": outcome.result, **facts}), file=said, flush=True)


def _bound(megabytes: int) -> None:
    """Refuse this process more memory than it has and so many megabytes, before the machine has none."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (megabytes << 20), resource.RLIM_INFINITY))


def _peak(*, reset: bool = False) -> int:
    """The most megabytes that this process had in memory, since the last reset; 0 where Linux does not tell."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:"))


def table(tallies: Sequence[Tally]) -> str:
    """All targets side by side."""
    rows = [(tally.target, tally.counts) for tally in tallies]
    rows.append(("all", sum((tally.counts for tally in tallies), Counter())))
    head = f"{'target':<15}" + "".join(f"{name:>11}" for name in COUNTED)
    return "\n".join([head, *(f"{name:<15}" + "".join(f"{n[key]:>11,}" for key in COUNTED) for name, n in rows)])


def main() -> int:
    """The command."""
    sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS), str(Path.cwd())]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together (10)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="one target; may be repeated")
    parser.add_argument("--only", type=int, help="one input of one target, by its number")
    for name, kind in (("--worker", str), ("--first", int), ("--seconds", float)):  # for a process of a target
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.seed, options.first, options.seconds, options.one)
        return 0
    from targets import TARGETS

    names = options.target or list(TARGETS)
    homes = [f"{TARGETS[name].__module__}:{TARGETS[name].__name__}" for name in names]
    with ThreadPoolExecutor(2) as pool:
        seconds = options.minutes * 60 * min(2, len(names)) / len(names)
        again = [pool.submit(fuzz, *pair, seconds, options.seed, options.only) for pair in zip(names, homes)]
        tallies = [future.result() for future in again]
    for tally in tallies:
        for texts in tally.findings.values():
            print(f"{tally.target}: {texts[0]} ({len(texts)} in all)\n")
    print(table(tallies))
    return 0 if all(tally.is_good for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
