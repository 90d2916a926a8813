"""How long commands take from nothing to their last line, beside what torch alone takes to be imported.

Each is a process of its own, and they take turns, so that what slows one slows the others. Printed are the fastest of
several rounds by the clock, and the least processor time, which depends less on other work on the machine.

python benchmarks/bench_startup.py --rounds 7
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SACCADE = (sys.executable, "-m", "saccade")


class Command(NamedTuple):
    """What is run, and how long it may take by the clock of a quiet machine."""

    name: str
    words: tuple[str, ...]
    goal: float | None = None


def spent(words: tuple[str, ...]) -> tuple[float, float]:
    """Seconds by the clock and of the processors, those of its own processes included."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    clock, after = time.perf_counter() - began, os.times()
    return clock, after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        made = (*SACCADE, "data", "make", "mref", "--count", "1", "--out", folder, "--quiet")
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        picture = str(next(Path(folder).glob("*.png")))
        commands = (
            Command("import torch", (sys.executable, "-c", "import torch")),
            Command("saccade --help", (*SACCADE, "--help"), 0.3),
            Command("saccade list", (*SACCADE, "list"), 0.5),
            Command("saccade look, one picture", (*SACCADE, "look", picture, "--ask", "7", "--device", "cpu"), 1.2),
        )
        found: dict[str, list[tuple[float, float]]] = {command.name: [] for command in commands}
        for _ in range(rounds + 1):
            for command in commands:
                found[command.name].append(spent(command.words))
    for command in commands:
        clocks, processors = zip(*found[command.name][1:])  # the first round fills the caches
        goal = "" if command.goal is None else f"   goal {command.goal:.1f} s"
        print(f"{command.name:26s} {min(clocks):6.2f} s   processors {min(processors):6.2f} s{goal}")


if __name__ == "__main__":
    main()
