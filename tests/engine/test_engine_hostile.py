"""Checkpoints of strangers: a CheckpointError says what is wrong, whatever they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from saccade.engine.checkpoint import Checkpoint, Position, capture_rng, pack
from saccade.engine.ema import WeightAverage
from saccade.engine.step import Learner
from saccade.errors import CheckpointError


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward_raw(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.inner(x)}


@pytest.fixture
def parts() -> tuple[Learner, torch.optim.Optimizer, dict[str, nn.Parameter]]:
    torch.manual_seed(0)
    learner = Learner(Model())
    parameters = dict(learner.model.named_parameters())
    optimizer = torch.optim.AdamW(parameters.values())
    learner(x=torch.ones(4, 3))["logits"].sum().backward()
    optimizer.step()
    return learner, optimizer, parameters


def packed(
    parts: tuple[Learner, torch.optim.Optimizer, dict[str, nn.Parameter]], ema: WeightAverage | None = None
) -> Checkpoint:
    learner, optimizer, parameters = parts
    rng = [capture_rng(torch.device("cpu"))]
    tensors, facts = pack(Position(step=1), learner, optimizer, parameters, ema, rng)
    return Checkpoint(Path("step-00000001"), 1, tensors, json.loads(json.dumps(facts)))


@pytest.mark.parametrize(
    "change",
    [{"step": -1}, {"phase": 1}, {"phase_step": 2**63}, {"seconds": -1.0}, {"best": []}, {"validation": {"a": "b"}}],
)
def test_a_position_that_no_run_has(parts: Any, change: dict) -> None:
    checkpoint = packed(parts)
    assert checkpoint.position(1) == Position(step=1)
    checkpoint.facts["position"].update(change)
    with pytest.raises(CheckpointError, match="position"):
        checkpoint.position(1)


WRONG = {
    "model/inner.weight": torch.ones(5),
    "ema/inner.weight": torch.ones(5),
    "ema_updates": torch.ones(2),
    "optimizer/inner.weight/exp_avg": torch.ones(5),
    "rng/0/torch": torch.zeros(3, dtype=torch.uint8),
    "rng/0/python": torch.ones(4, dtype=torch.int64),
    "rng/0/numpy": torch.full((626,), -1),
    "scalars": [1],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_state_of_another_make_is_refused(parts: Any, name: str) -> None:
    learner, optimizer, parameters = parts
    ema = WeightAverage(dict(learner.model.state_dict()), 0.9)

    def restore(checkpoint: Checkpoint) -> None:
        checkpoint.restore_model(learner, ema)
        checkpoint.restore_optimizer(optimizer, parameters)
        assert not checkpoint.restore_rng(1, torch.device("cpu"))
        assert checkpoint.restore_rng(0, torch.device("cpu"))

    restore(packed(parts, ema))
    broken = packed(parts, ema)
    if name == "scalars":
        broken.facts["optimizer_scalars"] = {"inner.weight": WRONG[name]}
    else:
        broken.tensors[name] = WRONG[name]
    with pytest.raises(CheckpointError, match="fit"):
        restore(broken)
