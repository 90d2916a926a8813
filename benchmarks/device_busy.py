"""How much of a training the device computes: the time covered by kernels and copies, divided by the time that passes.

A recipe is trained by the engine itself. After some steps it is timed for as many steps as asked for, then the same
again under torch's profiler. Shares are of the profiled steps; logging is part of them, validation is not.

``benchmarks/gpu.py --only busy`` measures the recipes of the table in docs/benchmarks.md.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from saccade.commands.train import build_task, resolve
from saccade.data.scenes.glyphs import has_mnist
from saccade.engine.loop import fit
from saccade.engine.recipe import load_recipe

Span = tuple[float, float]
"""Start and end of a kernel or a copy, in microseconds."""


class MeasuredError(Exception):
    """Ends the training once its figures are known."""


def measure(
    name: str,
    *,
    phase: str | None = None,
    overrides: tuple[str, ...] = (),
    device: str = "cuda",
    warm: int = 30,
    steps: int = 100,
) -> dict[str, Any]:
    """The figures of one recipe."""
    glyphs = () if has_mnist() or "glyphs" not in load_recipe(name).data else ("data.glyphs=pack",)
    recipe = resolve(name, overrides=(*glyphs, *overrides), phases=[phase] if phase else [])
    on_gpu = device.startswith("cuda")
    task = build_task(recipe)
    plain = task.train_batches
    figures: dict[str, Any] = {}

    def now() -> float:
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    def train_batches(*arguments: Any, **options: Any) -> Iterator[Any]:
        """Those of the task; a batch is asked for when the step before is done."""
        batches = plain(*arguments, **options)
        yield from islice(batches, warm * recipe.accumulate)
        began = now()
        yield from islice(batches, steps * recipe.accumulate)
        seconds = now() - began
        with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as profiler:
            began = now()
            yield from islice(batches, steps * recipe.accumulate)
            profiled = now() - began
        spans = spans_of(profiler, on_gpu)
        busy = covered(spans)  # microseconds
        figures.update(
            steps=steps,
            step_ms=1e3 * seconds / steps,
            step_ms_profiled=1e3 * profiled / steps,
            busy_ms=busy / (1e3 * steps),
            busy=busy / (1e6 * profiled),
            kernels_per_step=len(spans) / steps,
        )
        raise MeasuredError

    task.train_batches = train_batches  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder:
            fit(task, recipe, Path(folder) / "run", device=device, progress="quiet")
    except MeasuredError:
        rate = 1e3 * recipe.batch_size / figures["step_ms"]
        chosen = {"recipe": name, "phase": recipe.phases[0].name, "batch": recipe.batch_size}
        return {**chosen, "compiled": recipe.compile, "examples_per_second": rate, **figures}
    raise RuntimeError(f"{name}: the training ended before {warm + 2 * steps} steps were done")


def spans_of(profiler: profile, on_gpu: bool) -> list[Span]:
    """What ran on the device, in order; on a CPU its operations, so that the way can be tried there."""
    return sorted(
        (event.start_ns() / 1e3, (event.start_ns() + event.duration_ns()) / 1e3)
        for event in profiler.profiler.kineto_results.events()  # type: ignore[union-attr]
        if not on_gpu or event.device_type() == torch.autograd.DeviceType.CUDA
    )


def covered(spans: list[Span]) -> float:
    """Microseconds in which at least one of ``spans`` ran."""
    total, until = 0.0, 0.0
    for start, end in spans:
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def shown(row: dict[str, Any]) -> str:
    """The figures in one line."""
    return (
        f"{row['recipe']}, {row['phase']}: the device computes {100 * row['busy']:.1f} % of the time; a step of "
        f"{row['kernels_per_step']:.0f} kernels takes {row['step_ms']:.2f} ms, "
        f"profiled {row['step_ms_profiled']:.2f} ms"
    )
