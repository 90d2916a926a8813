"""Scenes per second of the attribute generators, on one CPU thread or a GPU.

Layout, picture, the background as a part of the picture, and layout and picture together; then a batch of training
from scenes that are made already, which a step waits for. On a GPU, also whether kernels make the scenes, and the peak
of its memory.

python benchmarks/bench_scenes.py                        MREF on one CPU thread
python benchmarks/bench_scenes.py --data mdist
python benchmarks/bench_scenes.py --device cuda          all three sets, 4,096, 8,192 and 16,384 at once
python benchmarks/bench_scenes.py --device cuda --json scenes.json
python benchmarks/bench_scenes.py --device cuda --plain  the same without the kernels
python benchmarks/bench_scenes.py --device cuda --check  compare every field with the CPU's, and name what differs
python benchmarks/bench_scenes.py --device cuda --tune   placing and painting with other settings of the kernels
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from saccade.data.scenes import kernels
from saccade.data.scenes.glyphs import GlyphPolicy, has_mnist
from saccade.data.scenes.hashing import hash_state
from saccade.data.scenes.layout import SceneLayout
from saccade.data.scenes.render import render
from saccade.data.scenes.sampler import _MAX_ATTEMPTS, _PLACE, sample_layout
from saccade.data.tables.splits import Split
from saccade.families.question.scenes import SCENES, SceneData, SceneDataConfig

BATCH, ASKS = 256, 4  # scenes of a batch, questions about each
SPLITS: tuple[tuple[Split, int], ...] = (("train", 0), ("val", 1), ("test", 2))
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


def data_of(name: str, device: torch.device, split: Split = "train", seed: int = 0) -> SceneData:
    glyphs: GlyphPolicy = "disjoint" if has_mnist() else "pack"
    config = SceneDataConfig(name=name, glyphs=glyphs, asks=ASKS if split == "train" else 1, seed=seed)
    return SceneData(config, split, device)


def measured(name: str, chunk: int, repeats: int, device: torch.device) -> dict[str, float | int | str]:
    """One set at one size of chunk, printed and returned."""
    data = data_of(name, device)
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


def difference(expected: SceneLayout, found: SceneLayout) -> str:
    """The first field, scene and slot in which layouts differ; empty where they are equal."""
    for name, column in expected.tensors().items():
        other = getattr(found, name).cpu()
        if not torch.equal(other, column):
            at = tuple((other != column).nonzero()[0].tolist())
            scene = int(expected.index[at[0]])
            return (
                f"{name} of scene {scene}, slot {at[1:]}: {int(other[at])} instead of {int(column[at])}; "
                f"{int((other != column).flatten(1).any(1).sum()) if other.ndim > 1 else 1} scenes differ in it"
            )
    return ""


def picture_difference(expected: Tensor, found: Tensor) -> str:
    wrong = expected != found.cpu()
    if not bool(wrong.any()):
        return ""
    at = tuple(wrong.nonzero()[0].tolist())
    scenes = int(wrong.flatten(1).any(1).sum())
    values = f"{int(found[at])} instead of {int(expected[at])}"
    return f"scene {at[0]}, channel, row, column {at[1:]}: {values}; {scenes} scenes differ"


def check(device: torch.device, chunk: int) -> int:
    """Compare with the CPU; how many comparisons failed."""
    failed = 0
    for name in sorted(SCENES):
        for split, seed in SPLITS:
            there, here = (data_of(name, where, split, seed) for where in (device, torch.device("cpu")))
            numbers = torch.cat([torch.arange(chunk), torch.tensor([2**33 + 7])])
            expected = sample_layout(here.spec, here.stream.glyphs, here.stream.seed, numbers)
            found = sample_layout(there.spec, there.stream.glyphs, there.stream.seed, numbers.to(device))
            wrong = difference(expected, found)
            pictures = picture_difference(render(expected), render(expected.to(device)))
            backgrounds = picture_difference(
                here.spec.background(here.stream.glyphs, seed, numbers, here.spec.size),
                there.spec.background(there.stream.glyphs, seed, numbers.to(device), there.spec.size),
            )
            for part, text in (("layout", wrong), ("picture", pictures), ("background", backgrounds)):
                print(f"{name} {split} {part}: {text or 'equal'}", flush=True)
                failed += bool(text)
    print(f"kernels: {kernels.why_no_kernels(device) or 'used'}")
    return failed


def tune(device: torch.device, chunk: int, repeats: int) -> None:
    """Placing and painting with other numbers of warps and tries."""
    from saccade.data.scenes.kernels import painting, placing

    data = data_of("mref", device)
    spec, glyphs = data.spec, data.stream.glyphs
    layout = sample_layout(spec, glyphs, 0, torch.arange(chunk, device=device))
    state, images, rgb = hash_state(0, layout.index), render(layout), layout.rgb
    where = (layout.glyph, layout.side, layout.x, layout.y, layout.present)

    def place(k: int, tries: int, warps: int) -> None:
        placing.place(
            glyphs,
            layout.glyph,
            state,
            layout.present,
            size=spec.size,
            extents=spec.extents,
            stream=_PLACE,
            max_tries=spec.max_tries,
            attempts=_MAX_ATTEMPTS,
            tries=tries,
            warps=warps,
        )

    def paint(k: int, warps: int) -> None:
        painting.paint(images, glyphs, *where, rgb, largest=spec.largest, warps=warps)

    for tries in (8, 16, 32, 64):
        for warps in (2, 4, 8):
            elapsed = statistics.median(seconds(partial(place, tries=tries, warps=warps), repeats, device))
            print(f"chunk {chunk}, place, {tries} tries, {warps} warps: {1e3 * elapsed:.2f} ms", flush=True)
    for warps in (1, 2, 4, 8):
        elapsed = statistics.median(seconds(partial(paint, warps=warps), repeats, device))
        print(f"chunk {chunk}, paint, {warps} warps: {1e3 * elapsed:.2f} ms", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=sorted(SCENES), help="one set (mref on a CPU, all on a GPU)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--chunk", type=int, help="scenes made at once (512 on a CPU, three sizes on a GPU)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--plain", action="store_true", help="without the kernels")
    parser.add_argument("--check", action="store_true", help="compare with the CPU instead of measuring")
    parser.add_argument("--tune", action="store_true", help="try other settings of the kernels instead of measuring")
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device(options.device)
    if options.plain:
        kernels.disable_kernels("--plain")
    if options.check:
        return 1 if check(device, options.chunk or 2048) else 0
    if options.tune:
        for chunk in (options.chunk,) if options.chunk else CHUNKS["cuda"]:
            tune(device, chunk, options.repeats)
        return 0
    names = [options.data] if options.data else ["mref"] if device.type == "cpu" else sorted(SCENES, reverse=True)
    chunks = (options.chunk,) if options.chunk else CHUNKS.get(device.type, (512,))
    results = [measured(name, chunk, options.repeats, device) for name in names for chunk in chunks]
    if options.json:
        machine = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
        report = {"machine": machine, "torch": torch.__version__, "scenes": results}
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
