"""A process that hands over the inputs of one target, one after the other, and says before and after each.

``run.py`` starts it, watches it, and ends it when an input takes too long or too much memory. Each line on its output
is JSON: ``{"begin": n}``, then the outcome with seconds of computing and the largest memory so far.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import torch
from fuzzing import Inputs

MEGABYTE = 2**20


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
    os.dup2(2, 1)  # whatever an input prints does not reach the one who watches
    torch.set_num_threads(1)
    end = time.monotonic() + options.seconds
    module, _, name = options.target.partition(":")
    target = getattr(importlib.import_module(module), name)(options.folder)
    inputs = Inputs(target, options.seed)
    grown = _memory() + 4 * target.memory * MEGABYTE  # a last bound, should the watcher be too slow
    resource.setrlimit(resource.RLIMIT_AS, (grown + 64 * 2**30, resource.RLIM_INFINITY))
    tell(told, corpus=len(inputs.corpus), memory=_memory() // MEGABYTE)
    for number in itertools.count(options.first) if options.only is None else (options.only,):
        if time.monotonic() > end and options.only is None:
            break
        tell(told, begin=number, name=_name(inputs, number))
        cpu = time.process_time()
        outcome = inputs.outcome(number)
        tell(told, end=number, name=outcome.name, result=outcome.result, told=outcome.told[-4000:],
             cpu=time.process_time() - cpu, memory=_memory() // MEGABYTE)  # fmt: skip
    tell(told, done=True)


def tell(stream: Any, **facts: Any) -> None:
    """One line."""
    stream.write(json.dumps(facts) + "\n")
    stream.flush()


def _name(inputs: Inputs, number: int) -> str:
    return inputs.corpus[number][0] if number < len(inputs.corpus) else f"drawn {number}"


def _memory() -> int:
    """Bytes of the largest memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
