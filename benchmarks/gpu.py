"""Every figure that needs a GPU, by one command; the figures go into a JSON file, section by section.

    PYTHONPATH=src python3 benchmarks/gpu.py --out docs/benchmarks/h200.json
    PYTHONPATH=src python3 benchmarks/gpu.py --only busy,start --out /tmp/some.json
    PYTHONPATH=src python3 benchmarks/gpu.py --tiny --device cpu       tries every section with tiny sizes
    PYTHONPATH=src python3 benchmarks/gpu.py --smoke                   before a release: does it work on a GPU?

``--smoke`` takes less than a minute: it trains, evaluates and looks on the GPU, compares with the CPU
(``gpu_smoke.py``), and writes ``docs/benchmarks/smoke-VERSION.json``, which ``make release-check`` asks for.

Run ``pytest -m gpu`` first: figures of something wrong are of no use. A section that fails says why, and the others
go on; the file is written after each. With ``--only``, other sections of a file that is there are kept.
The tables of docs/benchmarks.md are of the recorded file.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

import bench_evaluate
import bench_scenes
import device_busy
import gpu_smoke

ROOT = Path(__file__).parent.parent


class Options(NamedTuple):
    """What a section is told."""

    device: str
    tiny: bool


def scenes(options: Options) -> dict[str, Any]:
    """Scenes a second by set and size of chunk."""
    torch.set_num_threads(1)
    sets, chunks, repeats = ("mref", "mdist", "mbg"), (4096, 8192, 16384), 7
    if options.tiny:
        sets, chunks, repeats = ("mref",), (64,), 2
    device = torch.device(options.device)
    return {"rows": [bench_scenes.measured(name, chunk, repeats, device) for name in sets for chunk in chunks]}


def evaluate(options: Options) -> dict[str, Any]:
    """Every score of shipped models on full test sets."""
    models = ["soft-mref"] if options.tiny else ["soft-mref", "hattnet-ctx-mref", "hattnet-ctx-mbg"]
    n = 20 if options.tiny else 10_000
    return {"rows": [bench_evaluate.timed(model, n, options.device) for model in models]}


def start(options: Options) -> dict[str, Any]:
    """From the command to the published accuracy of HAttNet-CTX on MREF, start-up included."""
    recipe, target = "hattnet-ctx-mref-fast", 0.0 if options.tiny else 0.9851
    words = []
    if options.tiny:
        for setting in ("data.glyphs=pack", "batch_size=16", "phases.0.steps=2", "phases.0.validate_every=2"):
            words += ["--set", setting]
    with tempfile.TemporaryDirectory() as folder:
        out, began = Path(folder) / "run", time.monotonic()
        words += ["--out", str(out), "--device", options.device, "--quiet"]
        subprocess.run([sys.executable, "-m", "saccade", "train", recipe, *words], check=True)
        wall = time.monotonic() - began
        entries = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        ended = re.search(r"after step \d+ in ([\d.]+) s", (out / "log.txt").read_text())
    before = wall - float(ended[1])  # until the trainer's own clock starts, and the end of the process
    validated = [entry for entry in entries if entry["kind"] == "validation"]
    reached = next((entry for entry in validated if entry["values"]["accuracy"] >= target), None)
    return {
        "recipe": recipe,
        "target": target,
        "wall": wall,
        "start_up": before,
        "reached_after": before + reached["seconds"] if reached else None,
        "reached_step": reached["step"] if reached else None,
        "steps": validated[-1]["step"],
        "accuracy": validated[-1]["values"]["accuracy"],
        "validations": [[entry["step"], before + entry["seconds"], entry["values"]["accuracy"]] for entry in validated],
    }


TRAINED = (
    ("SOFT", "soft-mref", None),
    ("HAttNet-CTX", "hattnet-ctx-mref", None),
    ("HSAL-RL, backbone", "hsal-mnist-multiset", "activation"),
    ("HSAL-RL, controllers", "hsal-mnist-multiset", "controllers"),
    ("SAT", "sat-soft-scenes", None),
)


def busy(options: Options) -> dict[str, Any]:
    """The share of the time in which the device computes."""
    rows = []
    overrides, warm, steps = ("compile=false",), 30, 100  # to compile takes longer than the window
    if options.tiny:
        overrides, warm, steps = ("compile=false", "batch_size=8"), 1, 2
    for label, recipe, phase in TRAINED[::2] if options.tiny else TRAINED:
        found = device_busy.measure(
            recipe, phase=phase, overrides=overrides, device=options.device, warm=warm, steps=steps
        )
        print(device_busy.shown(found), flush=True)
        rows.append({"label": label, **found})
        gc.collect()
        if options.device.startswith("cuda"):
            torch.cuda.empty_cache()
    return {"rows": rows}


SECTIONS: dict[str, Callable[[Options], dict[str, Any]]] = {
    "scenes": scenes,
    "start": start,
    "busy": busy,
    "evaluate": evaluate,
}


def machine(device: str) -> dict[str, Any]:
    from saccade.engine.run_folder import versions

    on_gpu = device.startswith("cuda")
    found = {
        "device": torch.cuda.get_device_name() if on_gpu else platform.machine(),
        "cores": os.cpu_count(),
        "triton": importlib.util.find_spec("triton") is not None,
        **versions(),
    }
    return {**found, "when": datetime.datetime.now(datetime.UTC).date().isoformat()}


def write(path: Path, report: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def smoke_run(device: str, out: Path | None) -> int:
    """Run the smoke checks and keep what they found; what a CPU found is kept only where ``out`` says so."""
    found = {"machine": machine(device), **gpu_smoke.smoke(device)}
    if out is None and device.startswith("cuda"):
        out = ROOT / "docs" / "benchmarks" / f"smoke-{found['version']}.json"
    print(json.dumps(found, indent=1))
    if out is not None:
        write(out, found)
    return int(not found["ok"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the JSON file")
    parser.add_argument("--only", help=f"some of {','.join(SECTIONS)}")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: the figures mean nothing")
    parser.add_argument(
        "--smoke", action="store_true", help="no figures: train, evaluate and look, compared with the CPU"
    )
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(SECTIONS)
    if unknown := set(chosen) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error("no CUDA device; --device cpu with --tiny or --smoke tries the script")
    if options.smoke:
        return smoke_run(options.device, options.out)
    report: dict[str, Any] = {"sections": {}}
    if options.only and options.out and options.out.is_file():
        report = json.loads(options.out.read_text())
    report |= {"tiny": options.tiny}
    failed = False
    for name in chosen:
        print(f"\n== {name}", flush=True)
        began = time.monotonic()
        try:
            found = SECTIONS[name](Options(options.device, options.tiny))
        except Exception as error:  # the other sections can still be measured
            traceback.print_exc()
            found, failed = {"error": f"{type(error).__name__}: {error}"}, True
        seconds = round(time.monotonic() - began, 1)
        report["sections"][name] = {"machine": machine(options.device), "seconds": seconds, **found}
        print(json.dumps({key: value for key, value in found.items() if key != "rows"}), f"in {seconds} s", flush=True)
        if options.out:
            write(options.out, report)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
