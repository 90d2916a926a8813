"""Scenes per second of the attribute generators, on one CPU thread or a GPU.

Layout, picture, the background as a part of the picture, and layout and picture together; then a batch of training
from scenes that are made already, which a step waits for. On a GPU, also whether kernels make the scenes, and the peak
of its memory.

python benchmarks/bench_scenes.py                        MREF on one CPU thread
python benchmarks/bench_scenes.py --data mdist
python benchmarks/bench_scenes.py --device cuda          all three sets, 4,096, 8,192 and 16,384 at once
python benchmarks/bench_scenes.py --device cuda --json scenes.json
python benchmarks/bench_scenes.py --device cuda --plain  the same without the kernels
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from saccade.data.scenes import kernels
from saccade.data.scenes.drawing import render
from saccade.data.scenes.glyphs import has_mnist
from saccade.data.scenes.sampler import sample_layout
from saccade.families.question.scenes import SCENES, SceneData, SceneDataConfig

BATCH, ASKS = 256, 4  # scenes of a batch, questions about each
CHUNKS = {"cpu": (512,), "cuda": (4096, 8192, 16384)}


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
    data = SceneData(
        SceneDataConfig(name=name, glyphs="disjoint" if has_mnist() else "pack", asks=ASKS), "train", device
    )
    spec, glyphs = data.spec, data.stream.glyphs

    def numbers(k: int) -> Tensor:
        return torch.arange(k * chunk, (k + 1) * chunk, device=device)

    layout = sample_layout(spec, glyphs, 0, numbers(0))
    timed = {
        "layout": seconds(lambda k: sample_layout(spec, glyphs, 0, numbers(k)), repeats, device),
        "picture": seconds(lambda k: render(layout), repeats, device),
        "background": seconds(lambda k: spec.background(glyphs, 0, numbers(k), spec.size), repeats, device),
    }
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    timed["both"] = seconds(lambda k: render(sample_layout(spec, glyphs, 0, numbers(k))), repeats, device)
    reason = kernels.why_no_kernels(device, spec.size)
    print(f"{name}, {glyphs.name}, {data.backgrounds}, {device}, chunk {chunk}, torch {torch.__version__}")
    if device.type == "cuda":
        print(f"by {f'plain operations: {reason}' if reason else 'kernels'}")
    for part, times in timed.items():
        elapsed = statistics.median(times)
        print(f"{part:10s} {chunk / elapsed:12,.0f} scenes/s   {1e3 * elapsed:8.2f} ms a chunk")
    triples = torch.arange(BATCH * ASKS)  # always the same: they are made once
    batch = statistics.median(seconds(lambda k: data.take(triples, together=ASKS), 10 * repeats, device))
    print(f"{'batch':10s} {BATCH / batch:12,.0f} scenes/s   {1e3 * batch:8.2f} ms, {ASKS} questions a scene")
    result: dict[str, float | int | str] = {
        "set": name,
        "chunk": chunk,
        "device": str(device),
        "why_not": reason,
    }
    for part, times in timed.items():
        result[f"{part}_ms"] = 1e3 * statistics.median(times)
        result[f"{part}_scenes_per_s"] = chunk / statistics.median(times)
        result[f"{part}_best_scenes_per_s"] = chunk / min(times)
    if device.type == "cuda":
        result["peak_bytes"] = peak = torch.cuda.max_memory_allocated()
        print(f"{'peak':10s} {peak / 2**20:12,.0f} MiB")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=sorted(SCENES), help="one set (mref on a CPU, all on a GPU)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--chunk", type=int, help="scenes made at once (512 on a CPU, three sizes on a GPU)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--plain", action="store_true", help="without the kernels")
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device(options.device)
    if options.plain:
        kernels.disable_kernels("--plain")
    names = [options.data] if options.data else ["mref"] if device.type == "cpu" else sorted(SCENES, reverse=True)
    chunks = (options.chunk,) if options.chunk else CHUNKS.get(device.type, (512,))
    results = [measured(name, chunk, options.repeats, device) for name in names for chunk in chunks]
    if options.json:
        machine = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
        report = {"machine": machine, "torch": torch.__version__, "scenes": results}
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
