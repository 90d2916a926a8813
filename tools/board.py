"""Measure the maps of all models on scenes that are rendered again, and keep it for the leaderboard.

python tools/board.py --runs RUNS --out docs/results/board --count 1000

RUNS holds run folders called as their recipes are (vit-mref, cross-mref, soft-corner-mref, ...); what is not there is
taken from the shipped models, or left out.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from saccade.families.question.board.methods import METHODS
from saccade.families.question.reproduction.board.entrants import DATA, PLANTED
from saccade.families.question.reproduction.board.recording import FOLDER, measure_board, write_board
from saccade.recorded import results_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="mref mdist mbg corner largest blind; all without one")
    parser.add_argument("--runs", type=Path, help="folder of run folders")
    parser.add_argument("--out", type=Path, default=results_folder() / FOLDER)
    parser.add_argument("--count", type=int, default=1000, help="questions of each board")
    parser.add_argument("--sweeps", type=int, default=250, help="questions for deletion and insertion")
    parser.add_argument("--without", nargs="*", default=[], choices=METHODS, help="methods to leave out, such as ig")
    parser.add_argument("--split", default="test")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    names = options.names or [*DATA, *PLANTED]
    if unknown := [name for name in names if name not in (*DATA, *PLANTED)]:
        parser.error(f"no board '{unknown[0]}'; choose of {', '.join((*DATA, *PLANTED))}")
    command = "python tools/board.py " + " ".join(sys.argv[1:])
    for name in names:
        started = time.monotonic()
        record = measure_board(
            name,
            count=options.count,
            runs=options.runs,
            device=options.device,
            sweeps=options.sweeps,
            methods=[method for method in METHODS if method not in options.without],
            split=options.split,
            command=command,
            progress=lambda what, done, total: print(f"\r{what}: {done}/{total}", end="", flush=True),
        )
        if record is None:
            print(f"{name}: no model; give --runs")
            continue
        print(f"\r{write_board(record, options.out)}: {len(record.rows)} maps, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
