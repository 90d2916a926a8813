"""A process that hands over the inputs of one target, one after the other, and says before and after each.

``fuzz.py`` starts it, watches it, and ends it when an input takes too long or too much memory. Each line on its output
is JSON: ``{"begin": n}``, then the outcome with seconds of computing and the megabytes that were added meanwhile.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS)]

from fuzzing import Inputs  # noqa: E402 - found by the line above


def main() -> None:
    """Go on until there is no time left."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", help="MODULE:CLASS")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    sys.path.insert(0, str(Path.cwd()))
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # Redirect the input's prints to stderr.
    end = time.monotonic() + options.seconds
    module, _, name = options.target.partition(":")
    target = getattr(importlib.import_module(module), name)(options.folder)
    inputs = Inputs(target, options.seed)
    send_line(told, corpus=len(inputs.corpus))
    for number in itertools.count(options.first) if options.only is None else (options.only,):
        if time.monotonic() > end and options.only is None:
            break
        before = _fresh_peak()
        send_line(told, begin=number, name=_name(inputs, number), resident=before)
        cpu = time.process_time()
        outcome = inputs.outcome(number)
        send_line(told, end=number, name=outcome.name, result=outcome.result, told=outcome.told[-4000:],
             cpu=time.process_time() - cpu, grown=_status("VmHWM") - before)  # fmt: skip
    send_line(told, done=True)


def send_line(stream: Any, **facts: Any) -> None:
    """One line."""
    stream.write(json.dumps(facts) + "\n")
    stream.flush()


def _name(inputs: Inputs, number: int) -> str:
    return inputs.corpus[number][0] if number < len(inputs.corpus) else f"drawn {number}"


def _fresh_peak() -> int:
    """Megabytes in memory now; from now on the peak is that of what follows."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:
        return _status("VmHWM")


def _status(name: str) -> int:
    """Megabytes by what Linux says of this process; 0 elsewhere, where only deadlines hold."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{name}:")), 0)


if __name__ == "__main__":
    main()
