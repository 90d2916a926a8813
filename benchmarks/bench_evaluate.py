"""How long `saccade evaluate` takes: every score of 1,000 questions, for shipped models of generated scenes.

python benchmarks/bench_evaluate.py                                     # two models, 1,000 questions each
python benchmarks/bench_evaluate.py --models all --n 10000              # the full test of every model
python benchmarks/bench_evaluate.py --models hattnet-ctx-mbg --n 10000 --device cuda

Each model is scored in a process of its own; ``process`` is that process from its start to its end, ``seconds`` the
evaluation alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

from saccade.zoo.folders import shipped

ELSEWHERE = ("crown-cub", "hsal-svhn-multiset", "memn2n-babi", "sat-soft-photos")
"""Shipped models that are not scored on generated scenes."""


def timed(model: str, n: int, device: str) -> dict[str, Any]:
    """Seconds of one evaluation."""
    words = ["evaluate", model, "--limit", str(n), "--device", device, "--json", "--quiet"]
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "saccade", *words], check=True, stdout=subprocess.PIPE, text=True)
    process = time.perf_counter() - began
    evaluation = json.loads(done.stdout)
    row = {"model": model, "device": device, "n": evaluation["n"], "seconds": evaluation["seconds"], "process": process}
    print("evaluate {model:28s} {n:6,} in {seconds:7.1f} s (process {process:7.1f} s)".format(**row), flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["soft-mref", "hattnet-ctx-mbg"], help="names, or 'all'")
    parser.add_argument("--n", type=int, default=1000, help="examples of each")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    of_scenes = [name for name in sorted(shipped()) if name not in ELSEWHERE]
    for model in of_scenes if options.models == ["all"] else options.models:
        timed(model, options.n, options.device)


if __name__ == "__main__":
    main()
