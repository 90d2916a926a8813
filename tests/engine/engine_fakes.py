"""A small, complete Trainable on hashed synthetic data: what the engine's tests train."""

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from saccade.config import from_dict
from saccade.engine.recipe import Phase, Recipe
from saccade.tasks.task import build_loss

FEATURES, CLASSES = 6, 3


@dataclass(frozen=True)
class Scaled:
    """Cross-entropy, so many times."""

    times: float = 1.0


@dataclass(frozen=True)
class Double:
    """Cross-entropy, twice."""

    times = 2.0


LOSSES: dict[str, type] = {"default": Scaled, "double": Double}


class Crash(Exception):  # noqa: N818 - an event
    """Stands for a power cut."""


class TinyNet(nn.Module):
    """Linear, optional BatchNorm and dropout, linear."""

    def __init__(self, *, norm: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(FEATURES, 8), nn.BatchNorm1d(8) if norm else nn.Identity())
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(8, CLASSES)

    def forward_raw(self, features: Tensor) -> dict[str, Tensor]:
        hidden = self.drop(torch.tanh(self.stem(features)))
        return {"logits": self.head(hidden)}


class TinyTask:
    """Samples are numbered; sample i is a function of (seed, i), so batches of any size agree."""

    def __init__(self, *, seed: int = 0, epoch_samples: int | None = 64, poison_at: int | None = None, **model: Any):
        self.seed, self.epoch_samples, self.poison_at, self.model_options = seed, epoch_samples, poison_at, model
        self.model = self.new_model(seed)
        self.validations = 0
        self.scripted: list[float] | None = None
        self.told = ""
        self.parts = {"settings": [("seed", str(seed))]}
        self.signal_at: int | None = None
        self.crash_at: int | None = None
        self.built: list[tuple[Scaled | Double, tuple[str, ...]]] = []
        self.asked_for: list[tuple[str, str, int]] = []

    def new_model(self, seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return TinyNet(**self.model_options)

    def sample(self, index: int) -> tuple[Tensor, int]:
        generator = torch.Generator().manual_seed(self.seed * 7919 + index)
        features = torch.randn(FEATURES, generator=generator)
        if self.poison_at is not None and index == self.poison_at:
            features = features * float("nan")
        return features, int(features[:CLASSES].argmax()) if index != self.poison_at else 0

    def batch(self, first: int, size: int) -> dict[str, Tensor]:
        rows = [self.sample(first + offset) for offset in range(size)]
        return {"features": torch.stack([row[0] for row in rows]), "label": torch.tensor([row[1] for row in rows])}

    def train_batches(
        self,
        start: int,
        *,
        batch_size: int,
        rank: int = 0,
        world_size: int = 1,
        data: str = "default",
        features: str = "auto",
    ):
        self.asked_for.append((data, features, start))
        number = start
        while True:
            if number == self.signal_at:
                signal.raise_signal(signal.SIGTERM)
            if number == self.crash_at:
                raise Crash
            own = 500_000 if data == "others" else 0
            yield self.batch(own + (number * world_size + rank) * batch_size, batch_size)
            number += 1

    def summary(self) -> str:
        return self.told

    def data_parts(self) -> dict[str, list[tuple[str, str]]]:
        return self.parts

    def steps_per_epoch(self, batch_size: int) -> int | None:
        return None if self.epoch_samples is None else self.epoch_samples // batch_size

    def forward_options(self, loss: Any) -> dict[str, Any]:
        return {}

    def inputs(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"features": batch["features"]}

    def phase_loss(self, phase: Phase, learning: Sequence[str]) -> Scaled | Double:
        loss: Scaled | Double = build_loss(phase.loss, LOSSES)
        self.built.append((loss, tuple(learning)))
        return loss

    def loss(self, raw: dict[str, Tensor], batch: dict[str, Tensor], loss: Scaled | Double) -> dict[str, Tensor]:
        wrong = F.cross_entropy(raw["logits"], batch["label"])
        return {"loss": loss.times * wrong, "margin": raw["logits"].std()}

    def metric_names(self) -> tuple[str, ...]:
        return ("accuracy", "loss")

    def validate(self, model: nn.Module) -> dict[str, float]:
        self.validations += 1
        if self.scripted is not None:
            return {"accuracy": self.scripted[min(self.validations, len(self.scripted)) - 1]}
        torch.rand(3)  # a validation may draw numbers without disturbing training
        batch = self.batch(1_000_000, 64)
        logits = model.forward_raw(**self.inputs(batch))["logits"]
        return {
            "accuracy": (logits.argmax(1) == batch["label"]).float().mean().item(),
            "loss": F.cross_entropy(logits, batch["label"]).item(),
        }

    def save_model(self, model: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(
            {name: value.contiguous() for name, value in model.state_dict().items()}, folder / "model.safetensors"
        )
        (folder / "facts.json").write_text(json.dumps(facts))

    def to(self, device: torch.device) -> None:
        self.device = device


class DeviceTask(TinyTask):
    """Moves its batches, as a task is asked to."""

    def batch(self, first: int, size: int) -> dict[str, Tensor]:
        return {name: value.to(self.device) for name, value in super().batch(first, size).items()}


def tiny_recipe(*phases: dict[str, Any], **changes: Any) -> Recipe:
    """A short recipe; without phases, twelve steps of momentum SGD."""
    phase = {"steps": 12, "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}, "clip_norm": 1.0}
    values = {"name": "tiny", "family": "tiny", "model": {"name": "tiny"}, "batch_size": 8, "log_every": 4}
    return from_dict(Recipe, {**values, "phases": list(phases) or [phase], **changes})


def weights(task: TinyTask) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in task.model.state_dict().items()}


def read_metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
