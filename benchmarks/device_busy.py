"""How much of a training the device computes: the time covered by kernels and copies, divided by the time that passes.

A recipe is trained by the engine itself. After some steps it is timed for as many steps as asked for, then the same
again under torch's profiler. Shares are of the profiled steps; logging is part of them, validation is not.

``benchmarks/gpu.py --only busy`` measures the recipes of the table in docs/benchmarks.md.
"""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from saccade.commands.train import build_task, resolve
from saccade.data.scenes.glyphs import has_mnist
from saccade.engine.loop import fit
from saccade.engine.recipe import load_recipe


class Span(NamedTuple):
    """One kernel or copy, in microseconds."""

    start: float
    end: float
    name: str


class Measured(Exception):  # noqa: N818 - it ends the training, which has done its service
    """Carries the figures out of the training loop."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found
        super().__init__("measured")


class Window:
    """Counts the steps of a training, times some and profiles as many."""

    def __init__(self, warm: int, steps: int, device: torch.device) -> None:
        self.warm, self.steps, self.device = warm, steps, device
        self._done = 0
        self._plain = self._began = 0.0
        on_gpu = device.type == "cuda"
        self._profile = profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU])

    def before_step(self) -> None:
        """Open and close the windows; raises `Measured` after the last step."""
        if self._done in (self.warm, self.warm + self.steps, self.warm + 2 * self.steps):
            now = self._now()
            if self._done == self.warm + self.steps:
                self._plain = now - self._began
                self._profile.__enter__()
            elif self._done > self.warm:
                self._profile.__exit__(None, None, None)
                raise Measured(self._figures(now - self._began))
            self._began = self._now()
        self._done += 1

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def _figures(self, profiled: float) -> dict[str, Any]:
        spans = device_spans(self._profile, self.device)
        busy = covered(spans)
        per_step = 1e3 * self.steps  # microseconds of the whole window to milliseconds a step
        return {
            "steps": self.steps,
            "step_ms": 1e3 * self._plain / self.steps,
            "step_ms_profiled": 1e3 * profiled / self.steps,
            "busy_ms": busy / per_step,
            "busy": busy / (1e6 * profiled),
            "kernels_per_step": len(spans) / self.steps,
            "top": top(spans, per_step),
        }


def device_spans(profiled: profile, device: torch.device) -> list[Span]:
    """What ran on the device, in order; on a CPU its operations, so that the way can be tried there."""
    wanted = torch.autograd.DeviceType.CUDA if device.type == "cuda" else None
    found = []
    for event in profiled.profiler.kineto_results.events():  # type: ignore[union-attr]
        if wanted is None or event.device_type() == wanted:
            start = event.start_ns() / 1e3
            found.append(Span(start, start + event.duration_ns() / 1e3, short(event.name())))
    return sorted(found)


def covered(spans: list[Span]) -> float:
    """Microseconds in which at least one of ``spans`` ran."""
    total, until = 0.0, 0.0
    for span in spans:
        total += max(0.0, span.end - max(span.start, until))
        until = max(until, span.end)
    return total


def top(spans: list[Span], per_step: float, count: int = 10) -> list[dict[str, Any]]:
    """The kernels that take the most time together, by name."""
    times, runs = Counter[str](), Counter[str]()
    for span in spans:
        times[span.name] += span.end - span.start  # type: ignore[assignment]
        runs[span.name] += 1
    whole = sum(times.values()) or 1.0
    return [
        {"kernel": name, "share": spent / whole, "ms": spent / per_step, "runs": runs[name]}
        for name, spent in times.most_common(count)
    ]


def short(name: str) -> str:
    """A kernel without its template arguments, but with what it applies to each element.

    >>> short("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, 3>(int)")
    'vectorized_elementwise_kernel CUDAFunctor_add'
    >>> short("void at::native::(anonymous namespace)::max_pool_backward_nhwc<float>(int)")
    'max_pool_backward_nhwc'
    """
    name = name.replace("(anonymous namespace)::", "")
    base = re.split(r"[<(]", name.removeprefix("void "))[0].split("::")[-1].strip()
    applied = re.search(r"(\w*[Ff]unctor\w*|\w+_kernel_(?:cuda|impl))", name[len(base) :]) if "<" in name else None
    return f"{base} {applied[1]}" if applied and applied[1] not in base else base


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
    where = torch.device(device)
    window = Window(warm, steps, where)
    task = build_task(recipe)
    plain = task.train_batches

    def counted(*arguments: Any, **options: Any) -> Iterator[Any]:
        for number, batch in enumerate(itertools.chain([None], plain(*arguments, **options))):
            if number:
                yield batch
            if number % recipe.accumulate == 0:
                window.before_step()

    task.train_batches = counted  # type: ignore[method-assign]
    found: dict[str, Any] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            fit(task, recipe, Path(folder) / "run", device=device, progress="quiet")
    except Measured as measured:
        found = measured.found
    if not found:
        raise RuntimeError(f"{name}: the training ended before {warm + 2 * steps} steps were done")
    rate = 1e3 * recipe.batch_size / found["step_ms"]
    chosen = {"recipe": name, "phase": recipe.phases[0].name, "batch": recipe.batch_size, "compiled": recipe.compile}
    return {**chosen, "examples_per_second": rate, **found}


def shown(found: dict[str, Any]) -> str:
    """The figures in a few lines."""
    lines = [
        f"{found['recipe']}, {found['phase']}: the device computes {100 * found['busy']:.1f} % of the time; a step "
        f"of {found['kernels_per_step']:.0f} kernels takes {found['step_ms']:.2f} ms, profiled "
        f"{found['step_ms_profiled']:.2f} ms"
    ]
    lines += [f"  {each['share']:6.1%} {each['ms']:8.3f} ms  {each['kernel']}" for each in found["top"]]
    return "\n".join(lines)
