"""Training on stories on one thread: a memory network alone and ten restarts as one stack, a dynamic memory network.

Task 1 of the generated stories, with everything that a run does in a step: batches, passes, clipping, update. Processor
time, not the clock's: others may be at work on the machine. The runs take turns, so that what slows one slows the
others. Printed are the median of the rounds and the fastest one, which is nearest to a machine without other work.

python benchmarks/bench_stories.py
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from saccade.config import from_dict
from saccade.engine import Recipe, fit
from saccade.families.story.task import StoryTask
from saccade.tasks.task import Batch

ROUNDS, STEPS, WARM = 3, 128, 32


class Run(NamedTuple):
    """What is trained, and the questions a second that it should reach, times the runs of a stack."""

    name: str
    model: dict[str, Any]
    phase: dict[str, Any]
    batch_size: int
    replicas: int
    target: int


MEMORY = {"name": "memn2n", "config": {"dim": 20, "hops": 3}}
SGD = {"optimizer": {"name": "sgd", "lr": 0.16}, "clip_each": 1.25}
SMALL = {"size": 40, "embedding": 40}
TAUGHT = {"facts": "sentences", "gate": "softmax", "episode": "sum", "stops": True, "dropout": 0.3}
ADAM = {"optimizer": {"name": "adamw", "lr": 2e-3}, "clip_norm": 5.0}
GATED = {**ADAM, "loss": {"name": "gated"}}
RUNS = (
    Run("MemN2N, one run, batch 32", MEMORY, SGD, 32, 1, 20_000),
    Run("MemN2N, ten restarts in one stack, batch 32", MEMORY, SGD, 32, 10, 100_000),
    Run(
        "DMN as its recipe has it, 40 units as in known ports, batch 100",
        {"name": "dmn", "config": {**SMALL, **TAUGHT}},
        GATED,
        100,
        1,
        6_000,
    ),
    Run("DMN as its recipe has it, 64 units, batch 100", {"name": "dmn", "config": TAUGHT}, GATED, 100, 1, 6_000),
    Run("DMN, weakly supervised, words in one run, 40 units", {"name": "dmn", "config": SMALL}, ADAM, 100, 1, 6_000),
)


class TimedTask(StoryTask):
    """Notes when each batch is handed out: from one to the next is a whole step."""

    handed_out: list[float]

    def train_batches(self, start: int, **options: Any) -> Iterator[Batch]:
        """The batches of the task."""
        self.handed_out = []
        for batch in super().train_batches(start, **options):
            self.handed_out.append(time.process_time())
            yield batch


def questions_per_second(run: Run) -> float:
    """Of one short training."""
    task: Any = TimedTask(
        model=run.model["name"], model_config=run.model["config"], data={"name": "stories", "tasks": [1], "noise": 0.1}
    )
    settings = {"name": "bench", "family": "story", "model": run.model, "log_every": STEPS}
    phase = {**run.phase, "steps": STEPS, "validate_every": STEPS}
    recipe = from_dict(Recipe, {**settings, "batch_size": run.batch_size, "replicas": run.replicas, "phases": [phase]})
    with tempfile.TemporaryDirectory() as out:
        fit(task, recipe, Path(out) / "run", device="cpu", progress="quiet")
    seconds = (task.handed_out[-1] - task.handed_out[WARM]) / (len(task.handed_out) - 1 - WARM)
    return run.batch_size * run.replicas / seconds


def main() -> None:
    torch.set_num_threads(1)
    found: dict[str, list[float]] = {run.name: [] for run in RUNS}
    for _ in range(ROUNDS):
        for run in RUNS:
            found[run.name].append(questions_per_second(run))
    for run in RUNS:
        each = found[run.name]
        print(f"{run.name}: {statistics.median(each):,.0f} questions/s × runs, fastest {max(each):,.0f} "
              f"(wanted {run.target:,})")  # fmt: skip
    alone, stacked = (found[run.name] for run in RUNS[:2])
    ratio = statistics.median(many / one for one, many in zip(alone, stacked))
    print(f"ten restarts ÷ one run, questions/s × runs: {ratio:.1f} × (wanted 5)")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
