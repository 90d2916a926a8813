"""What the engine costs: its step of SOFT on MREF against a step of a bare PyTorch loop on the same batches.

On the CPU the two take turns step by step: the bare step runs while the engine waits for its next batch, and both are
measured in seconds of this process on one thread, so a busy machine slows both alike. The ratio of the medians is the
answer, 1.05 the bound. What a GPU does is measured by ``gpu.py``.

    python benchmarks/bench_engine.py [--steps 200]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_

from saccade.commands.train import build_task, resolve
from saccade.engine.loop import fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    settings = ["data.glyphs=pack", f"phases.0.steps={steps}", f"phases.0.validate_every={steps}", "compile=false"]
    recipe = resolve("soft-mref", overrides=[*settings, f"log_every={steps}", "batch_size=32"], phases=[])
    task, rival = build_task(recipe), build_task(recipe).model.train()
    optimizer = torch.optim.Adam(rival.parameters(), lr=1e-3)
    batches = list(itertools.islice(task.train_batches(0, batch_size=recipe.batch_size), 8))
    bare: list[float] = []
    engine: list[float] = []

    def bare_step(batch: Any) -> None:
        """The step one would write by hand: forward, backward, clip, update; nothing is checked or recorded."""
        optimizer.zero_grad(set_to_none=True)
        logits = rival.forward_raw(**task.inputs(batch)).logits
        F.cross_entropy(logits, batch["label"]).backward()
        clip_grad_norm_(rival.parameters(), 5.0)
        optimizer.step()

    def train_batches(*arguments: Any, **options: Any) -> Iterator[Any]:
        for batch in itertools.cycle(batches):
            began = time.process_time()
            bare_step(batch)
            bare.append(time.process_time() - began)
            began = time.process_time()
            yield batch
            engine.append(time.process_time() - began)

    task.train_batches = train_batches  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        fit(task, recipe, Path(folder) / "run", device="cpu", progress="quiet")
    medians = [1e3 * statistics.median(times[10:]) for times in (bare, engine)]
    print(f"bare   {medians[0]:8.3f} ms/step\nengine {medians[1]:8.3f} ms/step")
    print(f"ratio  {medians[1] / medians[0]:8.3f}  (bound 1.05)")


if __name__ == "__main__":
    main()
