"""Scenes per second of the attribute generators, on one CPU thread or a GPU.

Layout, picture, the background as a part of the picture, and layout and picture together; then a batch of training
from scenes that are made already, which a step waits for.

python benchmarks/bench_scenes.py --device cpu
python benchmarks/bench_scenes.py --data mdist
python benchmarks/bench_scenes.py --device cuda --chunk 4096
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from saccade.data.scenes.glyphs import has_mnist
from saccade.data.scenes.render import render
from saccade.data.scenes.sampler import sample_layout
from saccade.families.question.scene_data import SPECS, SceneData, SceneDataConfig

BATCH, ASKS = 256, 4  # scenes of a batch, questions about each


def seconds(work: Callable[[int], object], repeats: int, device: torch.device) -> float:
    """Median time of ``work(k)`` after two rounds that warm up."""
    times = []
    for k in range(repeats + 2):
        if device.type == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work(k)
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=sorted(SPECS), default="mref")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--chunk", type=int, help="scenes made at once (512 on a CPU, 8192 on a GPU)")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device(options.device)
    chunk = options.chunk or (512 if device.type == "cpu" else 8192)
    config = SceneDataConfig(name=options.data, glyphs="disjoint" if has_mnist() else "pack", asks=ASKS)
    data = SceneData(config, "train", device)
    spec, glyphs = data.spec, data.stream.glyphs

    def numbers(k: int) -> torch.Tensor:
        return torch.arange(k * chunk, (k + 1) * chunk, device=device)

    layout = sample_layout(spec, glyphs, 0, numbers(0))
    timed = {
        "layout": seconds(lambda k: sample_layout(spec, glyphs, 0, numbers(k)), options.repeats, device),
        "picture": seconds(lambda k: render(layout), options.repeats, device),
        "background": seconds(lambda k: spec.background(glyphs, 0, numbers(k), spec.size), options.repeats, device),
        "both": seconds(lambda k: render(sample_layout(spec, glyphs, 0, numbers(k))), options.repeats, device),
    }
    print(f"{options.data}, {glyphs.name}, {data.backgrounds}, {device}, chunk {chunk}, torch {torch.__version__}")
    for name, elapsed in timed.items():
        print(f"{name:10s} {chunk / elapsed:12,.0f} scenes/s   {1e3 * elapsed:8.2f} ms a chunk")
    triples = torch.arange(BATCH * ASKS)  # always the same: they are made once
    elapsed = seconds(lambda k: data.take(triples, together=ASKS), 10 * options.repeats, device)
    print(f"{'batch':10s} {BATCH / elapsed:12,.0f} scenes/s   {1e3 * elapsed:8.2f} ms, {ASKS} questions a scene")


if __name__ == "__main__":
    main()
