"""Peak memory of training: it must not grow with the number of scenes seen.

python benchmarks/bench_memory.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile

RUN = """
import resource, sys
from saccade.verbs.train import train
steps = sys.argv[1]
train("soft-mref", out=sys.argv[2], quiet=True, device="cpu",
      overrides=[f"phases.0.steps={steps}", "phases.0.validate_every=1000000", "batch_size=64", "data.glyphs=pack"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(steps: int) -> float:
    """MiB that a training run of ``steps`` steps needed at its peak."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", RUN, str(steps), f"{folder}/run"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1]) / 1024


def main() -> None:
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    short, long = peak(160), peak(480)  # the first already fills the bounded cache of scenes
    growth = 100 * (long / short - 1)
    print(f"training peak, 160 steps of 64   {short:8.0f} MiB   (this process alone: {own:.0f} MiB)")
    print(f"training peak, 480 steps of 64   {long:8.0f} MiB   ({growth:+.1f} % for three times the scenes)")


if __name__ == "__main__":
    main()
