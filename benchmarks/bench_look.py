"""How long a look takes: cold (a new process, from nothing to the answer) and warm, one picture and many.

python benchmarks/bench_look.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import torch

from saccade.families.question.scene_data import SceneData, SceneDataConfig
from saccade.predict import load

COLD = """
import sys, time
import numpy, saccade
seen = saccade.load("soft-mref").look(numpy.zeros((100, 100, 3), dtype="uint8"), ask=7)
heavy = [name for name in ("lightning_fabric", "matplotlib", "saccade.engine") if name in sys.modules]
print(",".join(heavy) or "none")
"""


def cold_start() -> tuple[float, str]:
    """Median seconds, of three runs, of a process that loads the model and looks once, and what it imported besides."""
    times, imported = [], ""
    for _ in range(3):
        start = time.perf_counter()
        imported = subprocess.run(
            [sys.executable, "-c", COLD], check=True, capture_output=True, text=True
        ).stdout.strip()
        times.append(time.perf_counter() - start)
    return statistics.median(times), imported


def warm(work, repeats: int = 30) -> float:
    """Median milliseconds."""
    times = []
    for _ in range(repeats + 5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[5:])


def main() -> None:
    predictor = load("soft-mref", device="cpu")
    pictures = list(SceneData(SceneDataConfig(glyphs="pack"), "test").take(torch.arange(64)).images)
    encoded = predictor.encode(pictures[0])
    seconds, imported = cold_start()
    print(f"look, cold start        {seconds:8.2f} s    heavy imports on the way: {imported}")
    print(f"look, warm              {warm(lambda: predictor.look(pictures[0], ask=7)):8.2f} ms")
    print(f"ask an encoded picture  {warm(lambda: predictor.ask(encoded, 7)):8.2f} ms")
    print(f"ask it all ten          {warm(lambda: predictor.ask_all(encoded)):8.2f} ms")
    many = warm(lambda: list(predictor.look_many(pictures, 7)), repeats=5)
    print(f"look at 64 in batches   {many:8.2f} ms   {64e3 / many:.0f} pictures/s")


if __name__ == "__main__":
    main()
