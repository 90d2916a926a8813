"""Scenes per second of the attribute generators, on one CPU thread or a GPU.

Layout, picture, the background as a part of the picture, and layout and picture together; then a batch of training
from scenes that are made already, which a step waits for. On a GPU, also whether kernels make the scenes, and the peak
of its memory.

python benchmarks/bench_scenes.py                        MREF on one CPU thread
python benchmarks/bench_scenes.py --data mdist

What a GPU makes at once, of all three sets, ``gpu.py --only scenes`` measures.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from saccade.data.scenes import kernels
from saccade.data.scenes.drawing import render
from saccade.data.scenes.glyphs import has_mnist
from saccade.data.scenes.sampler import sample_layout
from saccade.families.question.scenes import SCENES, SceneData, SceneDataConfig

BATCH, ASKS = 256, 4  # scenes of a batch, questions about each


def seconds(work: Callable[[int], object], repeats: int, device: torch.device) -> list[float]:
    """Times of ``work(k)`` after two rounds that warm up; on a CPU those of this thread, whatever else runs there."""
    clock = time.perf_counter if device.type == "cuda" else time.thread_time
    times = []
    for k in range(repeats + 2):
        if device.type == "cuda":
            torch.cuda.synchronize()
        start = clock()
        work(k)
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(clock() - start)
    return times[2:]


def measured(name: str, chunk: int, repeats: int, device: torch.device) -> dict[str, float | int | str]:
    """One set at one size of chunk, printed and returned."""
    glyphs = "disjoint" if has_mnist() else "pack"
    data = SceneData(SceneDataConfig(name=name, glyphs=glyphs, asks=ASKS), "train", device)
    spec, glyphs = data.spec, data.stream.glyphs

    def numbers(k: int) -> Tensor:
        return torch.arange(k * chunk, (k + 1) * chunk, device=device)

    layout = sample_layout(spec, glyphs, 0, numbers(0))
    parts = {
        "layout": lambda k: sample_layout(spec, glyphs, 0, numbers(k)),
        "picture": lambda k: render(layout),
        "background": lambda k: spec.background(glyphs, 0, numbers(k), spec.size),
        "both": lambda k: render(sample_layout(spec, glyphs, 0, numbers(k))),
    }
    reason = kernels.why_no_kernels(device, spec.size)
    print(f"{name}, {glyphs.name}, {data.backgrounds}, {device}, chunk {chunk}, torch {torch.__version__}")
    result: dict[str, float | int | str] = {"set": name, "chunk": chunk, "device": str(device), "why_not": reason}
    if device.type == "cuda":
        print(f"by {f'plain operations: {reason}' if reason else 'kernels'}")
        torch.cuda.reset_peak_memory_stats()
    for part, work in parts.items():
        times = seconds(work, repeats, device)
        median = statistics.median(times)
        print(f"{part:10s} {chunk / median:12,.0f} scenes/s   {1e3 * median:8.2f} ms a chunk")
        result[f"{part}_ms"] = 1e3 * median
        result[f"{part}_scenes_per_s"] = chunk / median
        result[f"{part}_best_scenes_per_s"] = chunk / min(times)
    if device.type == "cuda":
        result["peak_bytes"] = peak = torch.cuda.max_memory_allocated()
        print(f"{'peak':10s} {peak / 2**20:12,.0f} MiB")
    triples = torch.arange(BATCH * ASKS)  # always the same: they are made once
    batch = statistics.median(seconds(lambda k: data.take(triples, together=ASKS), 10 * repeats, device))
    print(f"{'batch':10s} {BATCH / batch:12,.0f} scenes/s   {1e3 * batch:8.2f} ms, {ASKS} questions a scene")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=sorted(SCENES), default="mref")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    measured(options.data, 512, 7, torch.device(options.device))


if __name__ == "__main__":
    main()
