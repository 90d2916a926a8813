"""What the engine costs: its step against a step of a bare PyTorch loop on the same small convolutional net.

On the CPU the two take turns step by step: the bare step runs while the engine waits for its next batch, and both are
measured in seconds of this process on one thread, so a busy machine slows both alike. On CUDA, where the host runs
ahead, whole rounds alternate. The ratio of the medians is the answer, 1.05 the bound.

    python benchmarks/bench_engine.py [--device cuda [--graph]]
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.config import from_dict
from saccade.engine import Phase, Recipe, fit

Batch = dict[str, Tensor]


class SmallNet(nn.Module):
    """Three convolutions with BatchNorm, and a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 16, 32, 32)
        self.layers = nn.Sequential(
            *(
                nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))
                for a, b in itertools.pairwise(widths)
            )
        )
        self.head = nn.Linear(32, 10)

    def forward_raw(self, image: Tensor) -> dict[str, Tensor]:
        """Class scores."""
        return {"logits": self.head(self.layers(image).mean((2, 3)))}


class BareLoop:
    """The loop one would write by hand: forward, backward, clip, update; nothing is checked or recorded."""

    def __init__(self, device: str) -> None:
        self.model = SmallNet().to(device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def step(self, batch: Batch) -> None:
        """One optimisation step."""
        self.optimizer.zero_grad(set_to_none=True)
        raw = self.model.forward_raw(batch["image"])
        F.cross_entropy(raw["logits"], batch["label"]).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()


class BenchTask:
    """Eight ready-made batches in turn; with a ``rival``, which takes a step of its own before each is handed out."""

    def __init__(self, batch_size: int, device: str, rival: BareLoop | None = None) -> None:
        self.model: nn.Module = SmallNet()
        self.rival = rival
        self.batches: list[Batch] = [
            {
                "image": torch.rand(batch_size, 3, 48, 48, device=device),
                "label": torch.randint(10, (batch_size,), device=device),
            }
            for _ in range(8)
        ]
        self.rival_seconds: list[float] = []
        self.engine_seconds: list[float] = []

    def train_batches(self, start: int, **_: Any) -> Iterator[Batch]:
        """Hands out batches and keeps the time."""
        for batch in itertools.cycle(self.batches):
            if self.rival is not None:
                began = time.process_time()
                self.rival.step(batch)
                self.rival_seconds.append(time.process_time() - began)
            began = time.process_time()
            yield batch
            self.engine_seconds.append(time.process_time() - began)

    def summary(self) -> str:
        """Nothing to tell of made-up data."""
        return ""

    def data_parts(self) -> dict[str, list[tuple[str, str]]]:
        """Nothing to keep of made-up data."""
        return {}

    def steps_per_epoch(self, batch_size: int) -> int | None:
        """The data has no end."""
        return None

    def forward_options(self, loss: None) -> dict[str, Any]:
        """None."""
        return {}

    def inputs(self, batch: Batch) -> Batch:
        """The pictures."""
        return {"image": batch["image"]}

    def phase_loss(self, phase: Phase, learning: Sequence[str]) -> None:
        """There is one loss, without settings."""

    def loss(self, raw: Batch, batch: Batch, loss: None) -> Batch:
        """Cross-entropy."""
        return {"loss": F.cross_entropy(raw["logits"], batch["label"])}

    def metric_names(self) -> tuple[str, ...]:
        """Nothing: only training is timed."""
        return ()

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Nothing: only training is timed."""
        return {}

    def save_model(self, model: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
        """An empty folder will do."""
        folder.mkdir(parents=True, exist_ok=True)

    def new_model(self, seed: int) -> nn.Module:
        """One more net."""
        return SmallNet()

    def to(self, device: torch.device) -> None:
        """The batches are there already."""


def run_engine(task: BenchTask, batch_size: int, steps: int, device: str, graph: bool) -> float:
    """Train with the engine; seconds of training per step, by the clock."""
    phase = {"steps": steps, "clip_norm": 5.0, "optimizer": {"name": "adamw", "lr": 1e-3}}
    settings = {
        "name": "bench",
        "family": "bench",
        "model": {"name": "bench"},
        "batch_size": batch_size,
        "graph": graph,
    }
    with tempfile.TemporaryDirectory() as out:
        recipe = from_dict(Recipe, {**settings, "phases": [phase], "log_every": steps // 4})
        fit(task, recipe, Path(out) / "run", device=device, progress="quiet")
        lines = (Path(out) / "run" / "metrics.jsonl").read_text().splitlines()
    rates = [json.loads(line).get("images_per_second") for line in lines]
    return batch_size / statistics.median(rate for rate in rates[1:] if rate)


def run_bare(task: BenchTask, steps: int, device: str) -> float:
    """Train with the bare loop; seconds per step, by the clock."""
    loop, batches = BareLoop(device), itertools.cycle(task.batches)
    for _ in range(steps // 4):
        loop.step(next(batches))
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        loop.step(next(batches))
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="on CUDA")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--graph", action="store_true", help="capture the engine's step as a CUDA graph")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    size, steps, device = options.batch_size, options.steps, options.device
    if device == "cpu":
        task = BenchTask(size, device, BareLoop(device))
        run_engine(task, size, steps, device, graph=False)
        bare, engine = task.rival_seconds[10:], task.engine_seconds[10:]
    else:
        bare, engine = [], []
        for _ in range(options.rounds):
            bare.append(run_bare(BenchTask(size, device), steps, device))
            engine.append(run_engine(BenchTask(size, device), size, steps, device, options.graph))
    print(f"bare   {statistics.median(bare) * 1e3:8.3f} ms/step")
    print(f"engine {statistics.median(engine) * 1e3:8.3f} ms/step")
    print(f"ratio  {statistics.median(engine) / statistics.median(bare):8.3f}  (bound 1.05)")


if __name__ == "__main__":
    main()
