"""Peak memory of training, of evaluations and of looks: it must not grow with the number of items.

python benchmarks/bench_memory.py
python benchmarks/bench_memory.py --most 10000     # questions and pictures, 8,000 by default

Of evaluations and looks a quarter of the items and all of them are measured, each in a process of its own, and what
100,000 items would need by that is told. Below 2,000 questions an evaluation still warms up, and looks as if it grew.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

RUN = """
import resource, sys
from saccade.commands.train import train
steps = sys.argv[1]
train("soft-mref", out=sys.argv[2], quiet=True, device="cpu",
      overrides=[f"phases.0.steps={steps}", "phases.0.validate_every=1000000", "batch_size=64", "data.glyphs=pack"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


EVALUATE = """
import resource, sys
import saccade
saccade.evaluate("soft-mref", limit=int(sys.argv[1]), sweeps=0, device="cpu")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

LOOK = """
import resource, sys
from pathlib import Path
from saccade.predict import load
from saccade.commands.look_files import stream_looks
files = sorted(Path(sys.argv[2]).iterdir())
wanted = [files[number % len(files)] for number in range(int(sys.argv[1]))]
for seen in stream_looks(load("soft-mref", "cpu"), wanted, 7):
    seen.to_json()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_of(code: str, *arguments: str) -> float:
    """MiB that a process needed at its peak."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1]) / 1024


def peak(steps: int) -> float:
    """MiB that a training run of ``steps`` steps needed at its peak."""
    with tempfile.TemporaryDirectory() as folder:
        return peak_of(RUN, str(steps), f"{folder}/run")


def tell_growth(what: str, most: int, measure: Callable[[int], float]) -> None:
    """The peaks of a quarter of the items and of all, and what 100,000 would need at that rate."""
    few, many = measure(most // 4), measure(most)
    each = max(0.0, many - few) / (most - most // 4)
    print(f"{what} peak, {most // 4:6,} items   {few:8.0f} MiB")
    print(f"{what} peak, {most:6,} items   {many:8.0f} MiB   (100,000: {many + each * (100_000 - most):.0f} MiB)")


def small_pictures(folder: str, count: int = 64) -> None:
    """PNG files of scenes."""
    import torch
    from PIL import Image

    from saccade.families.question.scenes.data import SceneData, SceneDataConfig

    images = SceneData(SceneDataConfig(glyphs="pack"), "test").take(torch.arange(count) * 9).images
    for number, image in enumerate((255 * images).byte().permute(0, 2, 3, 1).numpy()):
        Image.fromarray(image).save(Path(folder) / f"{number:03d}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=8000, help="the test of scenes has 10,000 questions")
    options = parser.parse_args()
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    short, long = peak(160), peak(480)  # the first already fills the bounded cache of scenes
    growth = 100 * (long / short - 1)
    print(f"training peak, 160 steps of 64   {short:8.0f} MiB   (this process alone: {own:.0f} MiB)")
    print(f"training peak, 480 steps of 64   {long:8.0f} MiB   ({growth:+.1f} % for three times the scenes)")
    tell_growth("evaluate, soft-mref,", options.most, lambda count: peak_of(EVALUATE, str(count)))
    with tempfile.TemporaryDirectory() as folder:
        small_pictures(folder)
        tell_growth("look, soft-mref,", options.most, lambda count: peak_of(LOOK, str(count), folder))


if __name__ == "__main__":
    main()
