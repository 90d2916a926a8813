"""Does this version work on a GPU? Trains, evaluates and looks on it, and compares with the CPU, in under a minute.

``benchmarks/gpu.py --smoke`` runs it and writes ``docs/benchmarks/smoke-VERSION.json``; each release has such a file.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import saccade

LONGEST = 60.0
"""Seconds that a smoke run on a GPU may take."""
FARTHEST = 2e-3
"""By how much the numbers of a look may differ between the GPU and the CPU, beside their largest or 1."""
FARTHEST_SCORE = 0.02
"""By how much a score of a hundred answers may: two of them, as scenes are rendered where the model computes."""
STORY = ["Mary took the football.", "Mary went to the kitchen.", "John went to the garden."]
LOOKS: tuple[tuple[str, Any, Any], ...] = (
    ("hattnet-ctx-sparse-mref", "digits", 7),
    ("hsal-mnist-multiset", "digits", None),
    ("sat-soft-scenes", "digits", None),
    ("racnn-details", "cat", None),
    ("memn2n-babi", STORY, "Where is the football?"),
)
"""A shipped model of each family with what it is shown and asked."""


def smoke(device: str) -> dict[str, Any]:
    """Every check with what it found; ``ok`` where all of them held."""
    began = time.monotonic()
    torch.backends.cudnn.allow_tf32 = False  # so that the two can be compared
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        checks = {
            "look": _checked(lambda: looks(device)),
            "train": _checked(lambda: training(device, run)),
            "evaluate": _checked(lambda: evaluations(device, run)),
        }
    seconds = round(time.monotonic() - began, 1)
    in_time = not device.startswith("cuda") or seconds <= LONGEST
    return {
        "version": saccade.__version__,
        "on_gpu": device.startswith("cuda"),
        "ok": in_time and all(found["ok"] for found in checks.values()),
        "seconds": seconds,
        "checks": checks,
    }


def looks(device: str) -> dict[str, Any]:
    """The same answers and weights on the device and on the CPU, for a model of each family."""
    found = {}
    for name, shown, ask in LOOKS:
        given = saccade.example(shown) if isinstance(shown, str) else shown
        here, there = (saccade.load(name, where).look(given, ask) for where in (device, "cpu"))
        pairs = zip(here.trace.looks, there.trace.looks, strict=True)
        apart = max(_apart(mine, cpu) for mine, cpu in pairs)
        same = here.answer == there.answer
        found[name] = {"answer": str(here.answer), "same_answer": same, "looks_apart": apart}
    ok = all(each["same_answer"] and each["looks_apart"] <= FARTHEST for each in found.values())
    return {"ok": ok, "models": found}


def _apart(mine: Any, cpu: Any) -> float:
    """The largest difference between two looks in what the answer was computed with: weights, and where crops lie."""
    pairs = ((mine.weights, cpu.weights), (mine.frame, cpu.frame))
    return max(
        float((here.cpu() - there).abs().max() / there.abs().max().clamp(min=1))
        for here, there in pairs
        if there is not None
    )


def training(device: str, run: Path) -> dict[str, Any]:
    """A short training of SOFT: the loss on validation scenes falls."""
    steps, batch = (300, 256) if device.startswith("cuda") else (30, 32)
    settings = ["data.glyphs=pack", f"batch_size={batch}", f"phases.0.steps={steps}", "compile=false"]
    settings += [f"phases.0.validate_every={steps // 3}"]
    result = saccade.train("soft-mref", out=run, overrides=settings, device=device, quiet=True)
    rows = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    losses = [row["values"]["loss"] for row in rows if row["kind"] == "validation"]
    ok = len(losses) > 1 and all(map(math.isfinite, losses)) and losses[-1] < losses[0]
    return {"ok": ok, "steps": result.step, "batch": batch, "validation_losses": losses}


def evaluations(device: str, run: Path) -> dict[str, Any]:
    """The trained run can be scored, and a shipped model has the same scores on the device and on the CPU."""
    few = {"limit": 100, "sweeps": 4, "twins": 0}
    here, there = (saccade.evaluate("soft-mref", device=where, **few) for where in (device, "cpu"))
    own = saccade.evaluate(run, device=device, **few)
    apart = {
        name: abs(value - there[group][name])
        for group in ("metrics", "attention")
        for name, value in here[group].items()
        if isinstance(value, float)
    }
    ok = bool(apart) and max(apart.values()) <= FARTHEST_SCORE and math.isfinite(own["metrics"]["accuracy"])
    shown = {"accuracy": here["metrics"]["accuracy"], "accuracy_cpu": there["metrics"]["accuracy"]}
    return {"ok": ok, "run_accuracy": own["metrics"]["accuracy"], **shown, "scores_apart": max(apart.values())}


def _checked(check: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``check`` found and how long it took; a failure is told, and the other checks still run."""
    began = time.monotonic()
    try:
        found = check()
    except Exception as error:
        traceback.print_exc()
        found = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return {**found, "seconds": round(time.monotonic() - began, 1)}
