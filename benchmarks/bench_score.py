"""How long ``saccade.score`` takes, with all scores, baselines and bounds; and the memory that more maps take.

Maps are 100×100, written as .npy files and read again, with masks as PNG; then points; then a stream of maps that are
never on the disk, ten times as long the second time. The goal is 5 s for 1,000 maps on two cores. Memory is the peak of
the process: what grows with the stream is the names and one number for each score.

python benchmarks/bench_score.py --maps 1000 --stream 10000
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import saccade

SIDE = 100
GOAL = 5.0


def mask_of(rng: np.random.Generator) -> np.ndarray:
    mask = np.zeros((SIDE, SIDE), bool)
    top, left = rng.integers(0, SIDE - 20, 2)
    mask[top : top + 20, left : left + 20] = True
    return mask


def write(folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    for name in ("maps", "masks"):
        (folder / name).mkdir()
    for number in range(count):
        np.save(folder / "maps" / f"{number:06d}.npy", rng.random((SIDE, SIDE), dtype=np.float32))
        Image.fromarray(mask_of(rng)).save(folder / "masks" / f"{number:06d}.png")
    rows = (f"{number:06d}.jpg,{x},{y}\n" for number in range(count) for x, y in rng.integers(0, SIDE, (10, 2)))
    (folder / "points.csv").write_text("image,x,y\n" + "".join(rows))


def stream(count: int) -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    for number in range(count):
        yield f"{number:07d}", rng.random((SIDE, SIDE), dtype=np.float32)


def timed(what: str, run: Callable[[], object], rounds: int, goal: float | None = None) -> None:
    seconds = min(timeit.repeat(run, number=1, repeat=rounds))
    print(f"{what:34s} {seconds:6.2f} s{'' if goal is None else f'   goal {goal:.0f} s'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--maps", type=int, default=1000)
    parser.add_argument("--stream", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, options.maps)
        maps, masks = folder / "maps", folder / "masks"
        goal = GOAL * options.maps / 1000
        timed(f"{options.maps:,} maps, masks", lambda: saccade.score(maps, masks), options.rounds, goal)
        points = folder / "points.csv"
        timed(f"{options.maps:,} maps, points", lambda: saccade.score(maps, points), options.rounds, goal)
    mask = mask_of(np.random.default_rng(1))
    for count in (options.stream // 10, options.stream):
        truth = {f"{number:07d}": mask for number in range(count)}
        timed(f"{count:,} maps, streamed", lambda count=count, truth=truth: saccade.score(stream(count), truth), 1)
        alone = count * SIDE**2 * 4 / 2**20
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{'':34s} peak of the process {peak:,.0f} MiB; the maps alone are {alone:,.0f} MiB")


if __name__ == "__main__":
    main()
