"""Training speed of classifiers on pictures of 32 × 32: images a second of a recipe, in several ways to run its step.

The pictures are noise in the form of CIFAR-10's binary version, so nothing has to be fetched. Each way trains a few
hundred steps by the engine; the fastest stretch between two log lines counts, so compiling does not. The bound on an
H200-class GPU is 15,000 images a second for ran-56.

    python benchmarks/bench_classify.py [--recipes ran-56 ran-92] [--batches 256 512] [--steps 200] [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import saccade

PICTURES, RECORD = 10_000, 3073
WAYS = {
    "graph": ("graph=true", "compile=false"),
    "compile + graph": ("graph=true", "compile=true"),
    "eager": ("graph=false", "compile=false"),
}


def noise(folder: Path) -> Path:
    """Six batches of random records in ``folder``."""
    random = np.random.default_rng(0)
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        records = random.integers(0, 256, (PICTURES, RECORD), dtype=np.uint8)
        records[:, 0] %= 10
        (folder / f"{name}.bin").write_bytes(records.tobytes())
    return folder


def speed(recipe: str, batch: int, way: str, steps: int, data: Path, out: Path, device: str) -> dict[str, object]:
    """The fastest stretch of a short run, and how long the run took in all."""
    began = time.monotonic()
    settings = [f"batch_size={batch}", "phases.0.epochs=null", f"phases.0.steps={steps}", *WAYS[way]]
    settings += ["phases.0.schedule.warmup=0", f"log_every={max(1, steps // 8)}", f"phases.0.validate_every={steps}"]
    saccade.train(recipe, out=out, data=f"cifar10:{data}", overrides=settings, device=device, quiet=True)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    fastest = max(float(line["images_per_second"]) for line in lines if line["kind"] == "train")
    return {
        "recipe": recipe,
        "batch": batch,
        "way": way,
        "images_per_second": round(fastest),
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    """Print one JSON line for each recipe, batch and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs="+", default=["ran-56", "resnet-cifar10"])
    parser.add_argument("--batches", nargs="+", type=int, default=[256, 512])
    parser.add_argument("--ways", nargs="+", default=list(WAYS)[:2], choices=list(WAYS))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "noise"
        data.mkdir()
        noise(data)
        runs = [(recipe, batch, way) for recipe in given.recipes for batch in given.batches for way in given.ways]
        for number, (recipe, batch, way) in enumerate(runs):
            out = Path(scratch) / f"run{number}"
            print(json.dumps(speed(recipe, batch, way, given.steps, data, out, given.device)), flush=True)


if __name__ == "__main__":
    main()
