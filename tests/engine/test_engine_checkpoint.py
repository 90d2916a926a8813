"""Checkpoints: whole or not there, verified, and never unpickled; those of strangers are refused by name."""

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from saccade.engine.checkpoint import Checkpoint, CheckpointStore, Position, capture_rng, pack
from saccade.engine.step import Learner, WeightAverage
from saccade.errors import CheckpointError


def tensors(value: float) -> dict[str, torch.Tensor]:
    return {
        "model/w": torch.full((3, 2), value),
        "rng": torch.arange(5, dtype=torch.uint8),
        "step": torch.tensor(value),
    }


def filled(folder: Path, *steps: int, keep: int = 3) -> CheckpointStore:
    store = CheckpointStore(folder, keep=keep)
    for step in steps:
        store.save(step, tensors(step), {"position": {"step": step}})
    return store


def test_keeps_the_last_and_the_protected(tmp_path):
    store = filled(tmp_path, 1, 2, keep=2)
    for step in (3, 4, 5):
        store.save(step, tensors(step), {}, protect=[2])
    assert [path.name[-1] for path in store.paths()] == ["2", "4", "5"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [path.name for path in store.paths()]


def test_tied_and_strided_tensors_are_stored(tmp_path):
    shared = torch.arange(6.0).reshape(2, 3)
    store = CheckpointStore(tmp_path)
    store.save(1, {"a": shared, "b": shared, "c": shared.t()}, {})
    found = store.load_newest()[0].tensors
    assert torch.equal(found["b"], shared)
    assert torch.equal(found["c"], shared.t())


def damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif how == "truncate":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()


@pytest.mark.parametrize("file", ["state.safetensors", "state.json"])
@pytest.mark.parametrize("how", ["flip", "truncate", "remove"])
def test_damage_falls_back_to_the_one_before_and_is_named(tmp_path, file, how):
    store = filled(tmp_path, 1, 2)
    damage(tmp_path / "step-00000002" / file, how)
    checkpoint, problems = store.load_newest()
    assert checkpoint.step == 1
    assert len(problems) == 1
    assert "step-00000002" in problems[0]


class Bomb:
    """Creates a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("digest", ["of the file before", "its own"])
def test_pickle_is_refused_and_not_run(tmp_path, digest):
    store, proof, content = filled(tmp_path / "c", 1), tmp_path / "ran", pickle.dumps(Bomb(tmp_path / "ran"))
    folder = tmp_path / "c" / "step-00000001"
    (folder / "state.safetensors").write_bytes(content)
    if digest == "its own":
        header = json.loads((folder / "state.json").read_text())
        header["sha256"]["state.safetensors"] = hashlib.sha256(content).hexdigest()
        (folder / "state.json").write_text(json.dumps(header))
    with pytest.raises(CheckpointError, match=r"no usable checkpoint.*state\.safetensors"):
        store.load_newest()
    (folder / "state.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"state\.json"):
        store.load_newest()
    assert not proof.exists()


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
    "ema_updates": torch.ones(2),
    "optimizer/inner.weight/exp_avg": torch.ones(5),
    "rng/0/torch": torch.zeros(3, dtype=torch.uint8),
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
