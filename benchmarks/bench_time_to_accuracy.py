"""How long from the command to a good model: wall time, start-up included, until validation first reaches a target.

    python benchmarks/bench_time_to_accuracy.py [--recipe hattnet-ctx-mref] [--target 0.9851] [--set key=value …]

The run goes on to its end, so choose a short schedule: the rate should have come down by the time the target is met.
Beside it the share of the time in which scenes are made, measured by making the same scenes alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from saccade.engine.recipe import load_recipe
from saccade.families.question.scene_data import SceneData, SceneDataConfig


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="hattnet-ctx-mref")
    parser.add_argument("--target", type=float, default=0.9851)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    sets = [word for text in options.overrides for word in ("--set", text)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        started = time.monotonic()
        words = ["train", options.recipe, *sets, "--out", str(out), "--device", options.device, "--quiet"]
        subprocess.run([sys.executable, "-m", "saccade", *words], check=True)
        wall = time.monotonic() - started
        entries = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    validated = [entry for entry in entries if entry["kind"] == "validation"]
    start_up = wall - entries[-1]["seconds"]
    reached = next((entry for entry in validated if entry["values"]["accuracy"] >= options.target), None)
    recipe = load_recipe(options.recipe, overrides=options.overrides)
    print(f"{options.recipe}: {validated[-1]['values']['accuracy']:.4f} after {wall:.1f} s ({start_up:.1f} s start-up)")
    if reached is None:
        print(f"target {options.target:.4f} not reached")
    else:
        print(
            f"target {options.target:.4f} reached after {start_up + reached['seconds']:.1f} s, step {reached['step']}"
        )
    if torch.cuda.is_available() and recipe.data["name"] in ("mref", "mdist", "mbg"):
        alone = seconds_for_scenes(
            recipe.data, reached["step"] if reached else validated[-1]["step"], recipe.batch_size
        )
        print(f"making the same scenes alone: {alone:.1f} s")
    return 0 if reached is not None else 1


def seconds_for_scenes(data: dict[str, Any], steps: int, batch_size: int) -> float:
    """Time to make the scenes of ``steps`` batches on the GPU, nothing else going on."""
    config = SceneDataConfig(**data)
    made = SceneData(config, "train", device="cuda")
    made.take(torch.arange(batch_size), together=config.asks)
    torch.cuda.synchronize()
    started = time.monotonic()
    for number in range(1, min(steps, 400)):
        made.take(torch.arange(number * batch_size, (number + 1) * batch_size), together=config.asks)
    torch.cuda.synchronize()
    return (time.monotonic() - started) * steps / max(1, min(steps, 400) - 1)


if __name__ == "__main__":
    sys.exit(main())
