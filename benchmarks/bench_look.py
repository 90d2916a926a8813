"""How long a look takes: at one picture, warm, and at a folder of photographs.

python benchmarks/bench_look.py
python benchmarks/bench_look.py --photographs 1000     # JPEG files of 1,024 × 768 pixels, 200 by default

The folder is read twice in turn: decoded and resized alone, by the same decoders, and looked at.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from saccade.commands.look_files import kept_looks
from saccade.data.pictures.reading import prepare, stream_pictures
from saccade.data.scenes.photo_backgrounds import SHIPPED
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.predict import load


def warm(work, repeats: int = 30) -> float:
    """Median milliseconds."""
    times = []
    for _ in range(repeats + 5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[5:])


def photographs(folder: Path, count: int, size: tuple[int, int] = (1024, 768)) -> list[Path]:
    """JPEG files made of the shipped photographs and grain, of which no two are alike."""
    shipped = sorted(path for path in SHIPPED.rglob("*") if path.suffix == ".jpg")
    large = [np.asarray(Image.open(path).convert("RGB").resize(size, Image.Resampling.BICUBIC)) for path in shipped]
    grain = np.random.default_rng(0).normal(0, 6, (size[1], size[0], 1))
    files = [folder / f"{number:05d}.jpg" for number in range(count)]
    for number, file in enumerate(files):
        noisy = large[number % len(large)] + np.roll(grain, number, (0, 1))
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, quality=88)
    return files


def on_a_folder(name: str, count: int, *, kept: bool = False, repeats: int = 3) -> None:
    """Photographs a second: decoded and resized alone, and looked at; the fastest of a few, in turn."""
    predictor = load(name, device="cpu")
    asked = predictor.facts.queries[0] if predictor.facts.queries else None
    wanted = predictor.facts.preprocessing
    alone, looked = [], []
    with tempfile.TemporaryDirectory() as folder:
        files = photographs(Path(folder), count)
        for _ in range(repeats):
            start = time.perf_counter()
            for batch in stream_pictures(files, 32):  # what any reader of these files has to do
                for picture in batch:
                    prepare(picture, wanted.size, wanted.fill)
            alone.append(time.perf_counter() - start)
            start = time.perf_counter()
            sightings = predictor.look_many(files, asked)
            for seen in kept_looks(sightings, Path(folder) / "out") if kept else sightings:
                assert seen.looked_at
            looked.append(time.perf_counter() - start)
    rates = f"{count / min(looked):.0f}/s, decoded and resized alone {count / min(alone):.0f}/s"
    what = f"{name}{', files kept' if kept else ''}: {rates}, ratio {min(alone) / min(looked):.2f}"
    print(f"folder of {count} photographs, {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photographs", type=int, default=200)
    options = parser.parse_args()
    predictor = load("soft-mref", device="cpu")
    pictures = list(SceneData(SceneDataConfig(glyphs="pack"), "test").take(torch.arange(64)).images)
    print(f"look, warm              {warm(lambda: predictor.look(pictures[0], ask=7)):8.2f} ms")
    many = warm(lambda: list(predictor.look_many(pictures, 7)), repeats=5)
    print(f"look at 64 in batches   {many:8.2f} ms   {64e3 / many:.0f} pictures/s")
    on_a_folder("soft-mref", options.photographs)
    on_a_folder("hattnet-ctx-mref", options.photographs)
    on_a_folder("soft-mref", options.photographs // 4, kept=True)


if __name__ == "__main__":
    main()
