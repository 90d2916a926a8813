"""How long from the command to a good model: wall time, start-up included, until validation first reaches a target.

    python benchmarks/bench_time_to_accuracy.py [--recipe hattnet-ctx-mref-fast] [--target 0.9851] [--set key=value …]

The run goes on to its end, so choose a short schedule: the rate should have come down by the time the target is met.
Beside it how long the start took, and the share of the time in which scenes are made, measured by making the same
scenes alone.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from saccade.engine.recipe import load_recipe
from saccade.families.question.scenes import SceneData, SceneDataConfig

RECIPE, TARGET = "hattnet-ctx-mref-fast", 0.9851
"""The published accuracy of HAttNet-CTX on MREF."""


def measure(recipe: str, target: float, overrides: Sequence[str] = (), device: str = "auto") -> dict[str, Any]:
    """Train ``recipe`` by the command and say when its validation first had ``target``."""
    sets = [word for text in overrides for word in ("--set", text)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        started = time.monotonic()
        words = ["train", recipe, *sets, "--out", str(out), "--device", device, "--quiet"]
        subprocess.run([sys.executable, "-m", "saccade", *words], check=True)
        wall = time.monotonic() - started
        entries = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        log = (out / "log.txt").read_text()
    validated = [entry for entry in entries if entry["kind"] == "validation"]
    ended = re.search(r"after step \d+ in ([\d.]+) s", log)
    before = wall - float(ended[1])  # until the trainer's own clock starts, and the end of the process
    reached = next((entry for entry in validated if entry["values"]["accuracy"] >= target), None)
    return {
        "recipe": recipe,
        "overrides": list(overrides),
        "target": target,
        "wall": wall,
        "start_up": before,
        "reached_after": before + reached["seconds"] if reached else None,
        "reached_step": reached["step"] if reached else None,
        "steps": validated[-1]["step"],
        "accuracy": validated[-1]["values"]["accuracy"],
        "validations": [[entry["step"], before + entry["seconds"], entry["values"]["accuracy"]] for entry in validated],
    }


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default=RECIPE)
    parser.add_argument("--target", type=float, default=TARGET)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    found = measure(options.recipe, options.target, options.overrides, options.device)
    print(f"{options.recipe}: {found['accuracy']:.4f} after {found['wall']:.1f} s")
    print(f"before training {found['start_up']:.1f} s")
    for step, seconds, accuracy in found["validations"]:
        print(f"step {step}: {accuracy:.4f} after {seconds:.1f} s")
    if found["reached_after"] is None:
        print(f"target {options.target:.4f} not reached")
    else:
        print(f"target {options.target:.4f} reached after {found['reached_after']:.1f} s, step {found['reached_step']}")
    recipe = load_recipe(options.recipe, overrides=options.overrides)
    if torch.cuda.is_available() and recipe.data["name"] in ("mref", "mdist", "mbg"):
        alone = seconds_for_scenes(recipe.data, found["reached_step"] or found["steps"], recipe.batch_size)
        print(f"making the same scenes alone: {alone:.1f} s")
    return 0 if found["reached_after"] is not None else 1


if __name__ == "__main__":
    sys.exit(main())
