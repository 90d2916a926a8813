"""Gradients clipped by parameter and by replica, and options that reach the forward pass of a phase."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from engine_fakes import Double, TinyTask, tiny_recipe
from torch import Tensor, nn

from saccade.engine import fit
from saccade.engine.checkpoint import CheckpointStore


class Slopes(nn.Module):
    """Its output is times · (3 a₁ + 4 a₂ + ½ b): the gradient of a has norm 5 · times, that of b ½ · times."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
        self.register_buffer("times", torch.tensor(times))

    def forward_raw(self, features: Tensor, more: float = 0.0) -> dict[str, Tensor]:
        return {"out": self.times * (self.a @ torch.tensor([3.0, 4.0]) + 0.5 * self.b.sum()) + more}


class SlopeTask(TinyTask):
    """One step down these slopes; the model of seed s is 1 + 3 s times as steep."""

    def new_model(self, seed: int) -> nn.Module:
        return Slopes(1.0 + 3.0 * seed)

    def loss(self, raw: dict[str, Tensor], batch: Any, loss: Any) -> dict[str, Tensor]:
        return {"loss": raw["out"]}

    def validate(self, model: nn.Module) -> dict[str, float]:
        return {"accuracy": 0.0, "loss": 0.0}


def after_one_step(tmp_path, replicas: int = 1, **clip: float) -> dict[str, Tensor]:
    phase = {"steps": 1, "optimizer": {"name": "sgd", "lr": 1.0, "momentum": 0.0}, **clip}
    fit(SlopeTask(), tiny_recipe(phase, replicas=replicas), tmp_path / "run", device="cpu", progress="quiet")
    tensors = CheckpointStore(tmp_path / "run" / "checkpoints").load_newest()[0].tensors
    return {name: -tensors[f"model/{name}"] for name in ("a", "b")}


@pytest.mark.parametrize(
    ("clip", "a", "b"),
    [
        ({}, [3.0, 4.0], [0.5]),
        ({"clip_each": 1.0}, [0.6, 0.8], [0.5]),  # 5 → 1; ½ is below it
        ({"clip_each": 10.0}, [3.0, 4.0], [0.5]),
        ({"clip_norm": 1.0}, [3 / 25.25**0.5, 4 / 25.25**0.5], [0.5 / 25.25**0.5]),  # all by one factor
        ({"clip_each": 1.0, "clip_norm": 2.0}, [0.6, 0.8], [0.5]),
    ],
)
def test_each_parameter_is_clipped_by_its_own_norm(tmp_path, clip: dict[str, float], a: list, b: list) -> None:
    moved = after_one_step(tmp_path, **clip)
    torch.testing.assert_close(moved["a"], torch.tensor(a), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(moved["b"], torch.tensor(b), rtol=1e-5, atol=1e-6)


def test_each_replica_is_clipped_by_its_own_norms(tmp_path) -> None:
    """The second is four times as steep, norms 20 and 2: at most 1.5, its b is clipped and that of the first is not."""
    moved = after_one_step(tmp_path, replicas=2, clip_each=1.5)
    torch.testing.assert_close(moved["a"], torch.tensor([[0.9, 1.2], [0.9, 1.2]]), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(moved["b"], torch.tensor([[0.5], [1.5]]), rtol=1e-5, atol=1e-6)


class OptionTask(SlopeTask):
    """A phase with the loss "double" sets an option of the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[float] = []

    def forward_options(self, loss: Any) -> dict[str, Any]:
        return {"more": 7.0} if isinstance(loss, Double) else {}

    def loss(self, raw: dict[str, Tensor], batch: Any, loss: Any) -> dict[str, Tensor]:
        self.seen.append(raw["out"].item())
        return {"loss": raw["out"]}


def test_options_reach_the_forward_pass_of_their_phase_alone(tmp_path) -> None:
    still = {"optimizer": {"name": "sgd", "lr": 1e-9, "momentum": 0.0}}
    phases = ({"name": "with", "loss": "double", "steps": 2, **still}, {"name": "without", "steps": 3, **still})
    task = OptionTask()
    fit(task, tiny_recipe(*phases), tmp_path / "run", device="cpu", progress="quiet")
    assert task.seen == pytest.approx([7.0, 7.0, 0.0, 0.0, 0.0], abs=1e-5)
