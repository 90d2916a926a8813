"""How long `saccade evaluate` takes: every score of 10,000 questions, for each shipped model of generated scenes.

python benchmarks/bench_evaluate.py                                     # two models, 1,000 questions each
python benchmarks/bench_evaluate.py --models all --n 10000              # the full test of every model
python benchmarks/bench_evaluate.py --models hattnet-ctx-mbg --n 10000 --device cuda --json found.json

With ``--n`` below 10,000 the time of 10,000 is told too: what does not grow (200 pictures for deletion and insertion)
is measured by itself. Each model is scored in a process of its own; ``process`` is that process from its start to its
end, ``seconds`` the evaluation alone. ``--profile`` prints where the time goes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FULL = 10_000
SOME = ("soft-mref", "hattnet-ctx-mbg")
ELSEWHERE = ("crown-cub", "hsal-svhn-multiset", "memn2n-babi", "sat-soft-photos")
"""Shipped models that are not scored on generated scenes."""

ONE = """
import json, sys, time
import saccade
model, limit, sweeps, device, profiled = json.loads(sys.argv[1])
given = {} if sweeps is None else {"sweeps": sweeps}
def run():
    return saccade.evaluate(model, limit=limit, device=device, **given)
if profiled:
    import cProfile, pstats
    profile = cProfile.Profile()
    profile.enable()
started, busy = time.perf_counter(), time.process_time()
found = run()
spent = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - busy, "n": found["n"]}
if profiled:
    profile.disable()
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(60)
print(json.dumps(spent))
"""


def of_scenes() -> list[str]:
    """Names of the shipped models that are scored on generated scenes."""
    from saccade.zoo import shipped

    return [name for name in sorted(shipped()) if name not in ELSEWHERE]


def timed(model: str, n: int, device: str, *, sweeps: int | None = None, profiled: bool = False) -> dict[str, Any]:
    """Seconds of one evaluation, in a process of its own."""
    given = json.dumps([model, n, sweeps, device, profiled])
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", ONE, given], check=True, stdout=subprocess.PIPE, text=True)
    return {**json.loads(done.stdout.splitlines()[-1]), "process": time.perf_counter() - started}


def measured(model: str, n: int, device: str, profiled: bool) -> dict[str, Any]:
    """Times of one model, and what 10,000 examples take by them."""
    found = {"model": model, "device": device, **timed(model, n, device, profiled=profiled)}
    if found["n"] < n or n >= FULL:  # a test of fewer examples is whole
        return {**found, "full": found["seconds"]}
    swept = model.startswith(("soft", "hard", "hattnet", "stn"))
    plain = timed(model, n, device, sweeps=0) if swept else found
    once = timed(model, max(20, n // 4), device, sweeps=0 if swept else None)
    slope = (plain["seconds"] - once["seconds"]) / max(1, plain["n"] - once["n"])
    full = FULL if not model.startswith("sat") else FULL // 2  # captions have 5,000 test scenes
    return {**found, "full": found["seconds"] + slope * (full - found["n"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(SOME), help="names, or 'all'")
    parser.add_argument("--n", type=int, default=1000, help="examples of each")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="write what was found here")
    parser.add_argument("--profile", action="store_true", help="print where the time goes (a little slower)")
    options = parser.parse_args()
    rows = []
    for model in of_scenes() if options.models == ["all"] else options.models:
        row = {**measured(model, options.n, options.device, options.profile), "load": os.getloadavg()[0]}
        rows.append(row)
        told = f"{row['n']:6,} in {row['seconds']:7.1f} s (CPU {row['cpu']:7.1f} s, process {row['process']:7.1f} s)"
        print(f"evaluate {model:28s} {told}, full test {row['full']:7.1f} s, load {row['load']:.1f}", flush=True)
        if options.json is not None:  # after each, so that a stop loses nothing
            options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
