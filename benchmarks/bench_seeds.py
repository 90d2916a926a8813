"""Several seeds at once ÷ one: wall time of both commands, start-up included, and whether the weights are the same.

    python benchmarks/bench_seeds.py [--recipe hattnet-ctx-mref] [--seeds 5] [--device cuda] [--steps N]
                                     [--set key=value …] [--at-once N] [--without-mps] [--out seeds.json]

One run is timed before and after the seeds, because the first may have to compile what the next ones find ready; the
faster of the two is the one that the seeds are compared with. The weights of seed 0 are compared between the two runs
alone (does this machine repeat itself at all?) and with those among the seeds. JSON goes to stdout, or to ``--out``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from saccade.engine.mps import PROGRAM

GOAL = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="hattnet-ctx-mref")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, help="of the first phase, with four validations; the recipe's by default")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--at-once", type=int)
    parser.add_argument("--without-mps", action="store_true", help="share the GPU by time slicing")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    overrides = list(options.overrides)
    if options.steps is not None:
        overrides += [f"phases.0.steps={options.steps}", f"phases.0.validate_every={max(1, options.steps // 4)}"]
    words = [options.recipe, *(word for text in overrides for word in ("--set", text)), "--device", options.device]
    many = ["--seeds", str(options.seeds)] + ([] if options.at_once is None else ["--at-once", str(options.at_once)])
    environment = dict(os.environ)
    if options.without_mps:
        paths = environment["PATH"].split(os.pathsep)
        environment["PATH"] = os.pathsep.join(path for path in paths if not (Path(path) / PROGRAM).exists())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        first = timed([*words, "--seed", "0", "--out", str(place / "first")], os.environ)
        seeds = timed([*words, "--seed", "0", *many, "--out", str(place / "seeds")], environment)
        second = timed([*words, "--seed", "0", "--out", str(place / "second")], os.environ)
        found = json.loads((place / "seeds" / "runs.json").read_text())
        own = [digest(place / name / "model") for name in ("first", "second", "seeds/seed-0")]
    one = min(first, second)
    result: dict[str, Any] = {
        "recipe": options.recipe,
        "overrides": overrides,
        "seeds": options.seeds,
        "seconds_one": [round(first, 2), round(second, 2)],
        "seconds_seeds": round(seeds, 2),
        "ratio": round(seeds / one, 3),
        "goal": GOAL,
        "at_once": found["at_once"],
        "sharing": found["sharing"],
        "threads": found["threads"],
        "seconds_of_each": [round(run["result"]["seconds"], 2) for run in found["runs"] if run["result"]],
        "used": [run["used"] for run in found["runs"]],
        "states": [run["state"] for run in found["runs"]],
        "attempts": [run["attempts"] for run in found["runs"]],
        "over_seeds": found["over_seeds"],
        "one_twice_bit_equal": own[0] == own[1],
        "seed_0_bit_equal_to_one": own[2] in own[:2],
    }
    text = json.dumps(result, indent=2)
    if options.out is None:
        print(text)
    else:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(
        f"{options.seeds} seeds ÷ one: {result['ratio']} ({seeds:.1f} s ÷ {one:.1f} s), goal ≤ {GOAL}", file=sys.stderr
    )
    return 0 if seeds / one <= GOAL else 1


def timed(words: list[str], environment: Any) -> float:
    """Seconds that ``saccade train`` takes with these words."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "saccade", "train", *words, "--quiet"], check=True, env=environment, stdout=2)
    return time.monotonic() - started


def digest(model: Path) -> str:
    return hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
