"""Run folders that were stopped in the middle, and what the same runs hold when nothing stops them.

``tools/golden.py write runs`` makes them; tests/golden/test_golden_resume.py goes on with a copy of each and compares.
Every run is a shipped recipe with a tiny model and a few steps. Only the public surface of saccade is used, and the
files of a run folder. ``tests/golden/runs/NAME`` holds:

::

    run/                the stopped run; paths of the machine that made it are replaced by `HERE`
    final.json          SHA-256 of every tensor of the whole run, its last validation, and what computed it
    final.safetensors   the model of the whole run
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

import saccade

RUNS = Path(__file__).parents[1] / "tests" / "golden" / "runs"
HERE = "{RUNS}"
"""Stands in stored files for the folder tests/golden/runs."""
AN_INSTANT = 1e-9
"""Minutes after which a run stops: after one step, whatever the machine."""


@dataclass(frozen=True)
class GoldenRun:
    """A recipe, what makes it tiny, and after how many steps it is stopped."""

    recipe: str
    stop: int
    overrides: tuple[str, ...]
    data: str | None = None
    phases: tuple[str, ...] = field(default=())


COMMON = ("log_every=1", "keep_checkpoints=1")
GOLDEN_RUNS = {
    "question": GoldenRun(
        "soft-mref",
        6,
        (
            *COMMON,
            "data.glyphs=pack",
            "model.config={channels: 6, hidden: 4, dropout: 0.3}",
            "batch_size=16",
            "phases.0.steps=8",
            "phases.0.validate_every=4",
            "phases.0.schedule.warmup=2",
            "phases.0.select={metric: loss, mode: min}",
        ),
    ),
}


def last_state(run: Path) -> dict[str, Tensor]:
    """Weights (``model/``), their moving average (``ema/``) and the optimiser's state in the newest checkpoint."""
    last = max((run / "checkpoints").glob("step-*"), key=lambda path: [int(part) for part in path.name[5:].split(".")])
    state = load_file(last / "state.safetensors")
    return {name: each for name, each in state.items() if name.startswith(("model/", "optimizer/", "ema/"))}


def digests(run: Path) -> dict[str, str]:
    """SHA-256 of the bytes of every tensor: of the model folder (``folder/``) and of the newest checkpoint."""
    found = {f"folder/{name}": each for name, each in load_file(run / "model" / "model.safetensors").items()}
    found |= last_state(run)
    return {name: hashlib.sha256(each.contiguous().numpy().tobytes()).hexdigest() for name, each in found.items()}


def last_validation(run: Path) -> dict[str, float]:
    """What the last validation of a run measured."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [row["values"] for row in rows if row["kind"] == "validation"][-1]


def machine() -> dict[str, str]:
    """What bits depend on: the versions that compute, and the processor that they choose their kernels for."""
    wanted = ("vendor_id", "cpu family", "model", "model name", "cache size", "flags")
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").split("\n\n")[0].splitlines() if info.exists() else [platform.processor()]
    known = [line for line in lines if line.split("\t")[0].strip(": ") in wanted] or lines
    return {
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "kernels": torch.backends.cpu.get_cpu_capability(),
        "processor": hashlib.sha256("\n".join(known).encode()).hexdigest(),
    }


def go_on(name: str, out: Path, home: Path) -> Any:
    """Resume a copy of the stored run ``name`` in the new folder ``out``, and return the result.

    Args:
        name: a key of ``GOLDEN_RUNS``.
        out: where the copy goes.
        home: cache folder of this run, so that nothing kept elsewhere counts.
    """
    shutil.copytree(RUNS / name / "run", out)
    config = out / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace(HERE, str(RUNS)), encoding="utf-8")
    with _alone(home):
        return saccade.train(out=out, resume=True, device="cpu", quiet=True)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One thread, and a cache folder of its own."""
    before, threads = os.environ.get("SACCADE_HOME"), torch.get_num_threads()
    os.environ["SACCADE_HOME"] = str(home)
    torch.set_num_threads(1)  # sums of floats depend on how they are split
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        os.environ.pop("SACCADE_HOME")
        if before is not None:
            os.environ["SACCADE_HOME"] = before


def write_runs() -> None:
    """Make every run: once to its end, once stopped."""
    for name, golden in GOLDEN_RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            _write_run(name, golden, Path(folder))
        print(f"{name}: stopped after step {golden.stop}")


def _write_run(name: str, golden: GoldenRun, folder: Path) -> None:
    whole, parts, place = folder / "whole", folder / "parts", RUNS / name
    begin: dict[str, Any] = {
        "recipe": golden.recipe,
        "data": golden.data,
        "phases": golden.phases,
        "overrides": golden.overrides,
    }
    with _alone(folder / "home"):
        finished = saccade.train(**begin, out=whole, device="cpu", quiet=True)
        for step in range(1, golden.stop + 1):
            how: dict[str, Any] = {"resume": True} if step > 1 else begin
            stopped = saccade.train(**how, out=parts, max_minutes=AN_INSTANT, device="cpu", quiet=True)
            if (stopped.stopped, stopped.step) != ("time", step):
                raise SystemExit(f"{name}: expected a stop after step {step}, found {stopped}")
    shutil.rmtree(place, ignore_errors=True)
    _store(parts, place / "run", folder)
    shutil.copy(whole / "model" / "model.safetensors", place / "final.safetensors")
    final = {
        "steps": finished.step,
        "machine": machine(),
        "validation": last_validation(whole),
        "sha256": digests(whole),
    }
    (place / "final.json").write_text(json.dumps(final, indent=1) + "\n", encoding="utf-8")
    go_on(name, folder / "again", folder / "home-again")
    if digests(folder / "again") != final["sha256"]:
        raise SystemExit(f"{name}: the resumed run does not end as the whole one does")
    _check_that_it_proves(name, parts, final["sha256"])


def _store(run: Path, place: Path, folder: Path) -> None:
    """Copy a run, with this machine's paths replaced."""
    shutil.copytree(run, place)
    for path in sorted(each for each in place.rglob("*") if each.suffix in (".yaml", ".txt", ".jsonl", ".json", ".md")):
        text = path.read_text(encoding="utf-8")
        plain = text.replace(str(RUNS), HERE).replace(f"{folder}/", "")
        if plain != text:
            path.write_text(plain, encoding="utf-8")
        if str(Path.home()) in plain or str(Path(tempfile.gettempdir())) in plain or str(RUNS.parents[2]) in plain:
            raise SystemExit(f"{path} names a folder of this machine")


def _check_that_it_proves(name: str, stopped: Path, final: dict[str, str]) -> None:
    """Refuse a run whose end would be the same without the steps after the stop."""
    if not (stopped / "model").is_dir():
        return
    before = digests(stopped)
    moved = {key.split("/")[0] for key in final if before.get(key) != final[key]}
    if not {"folder", "model"} <= moved:
        raise SystemExit(f"{name}: nothing changes after the stop in {moved}; choose another metric or more steps")
