"""Every benchmark that needs no GPU in turn, each in a process of its own, one thread where it says so.

Absolute times are those of this machine; ratios are measured side by side and carry over.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = (
    "bench_scenes.py",
    "bench_engine.py",
    "bench_evaluate.py",
    "bench_look.py",
    "bench_score.py",
    "bench_serve.py",
)


def main() -> int:
    worst = 0
    for name in BENCHMARKS:
        print(f"\n== {name}", flush=True)
        worst = max(worst, subprocess.run([sys.executable, Path(__file__).parent / name]).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
