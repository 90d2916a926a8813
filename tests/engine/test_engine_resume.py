"""Resuming bit for bit; checkpoints whole or not there, verified, never unpickled, and of strangers refused by name."""

import hashlib
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_fakes import Crash, TinyTask, read_metrics, tiny_recipe, weights
from torch import nn

from saccade.engine.checkpoint import Checkpoint, CheckpointStore, Position, capture_rng, pack
from saccade.engine.loop import fit
from saccade.engine.step import Learner, WeightAverage
from saccade.errors import CheckpointError, ConfigError

QUIET = {"device": "cpu", "progress": "quiet"}
SGD = {"name": "sgd", "lr": 0.1, "momentum": 0.9}
TWO_PHASES = (
    {"name": "head", "steps": 6, "train": ["head.*"], "optimizer": {"name": "adam", "lr": 0.01}, "loss": "double"},
    {
        "name": "all",
        "data": "others",
        "steps": 8,
        "optimizer": SGD,
        "schedule": {"name": "cosine"},
        "select": {"metric": "accuracy"},
    },
)
CASES = {
    "momentum": tiny_recipe(),
    "adamw-ema": tiny_recipe({"steps": 12, "optimizer": {"name": "adamw", "weight_decay": 0.1}}, ema=0.9),
    "rmsprop-accumulate": tiny_recipe({"steps": 12, "optimizer": {"name": "rmsprop", "lr": 1e-2}}, accumulate=2),
    "phases": tiny_recipe(*TWO_PHASES, ema=0.95),
    "replicas": tiny_recipe(replicas=2),
}


def new_task(**options) -> TinyTask:
    return TinyTask(dropout=0.3, **options)


def final_state(out):
    return CheckpointStore(out / "checkpoints").load_newest()[0]


def assert_same_run(one, other):
    """Equal weights, optimiser, averages and random state, and the same measurements on the way."""
    left, right = final_state(one), final_state(other)
    assert left.tensors.keys() == right.tensors.keys()
    for name in left.tensors:
        assert torch.equal(left.tensors[name], right.tensors[name]), name
    for state in (left, right):
        state.facts["position"].pop("seconds")
    assert left.facts == right.facts


def measurements(out, kind):
    return [(entry["step"], entry["values"]) for entry in read_metrics(out) if entry["kind"] == kind]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("stop_after", [1, 5, 6, 7])  # 6 is the border between two phases
def test_stop_and_resume_is_bit_for_bit(tmp_path, name, stop_after):
    recipe = CASES[name]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert fit(new_task(), recipe, whole, device="cpu", progress="quiet").stopped == "finished"
    task = new_task()
    task.signal_at = stop_after * recipe.accumulate - 1  # while the last batch of that step is made
    first = fit(task, recipe, parts, device="cpu", progress="quiet")
    assert (first.stopped, first.step) == ("signal", stop_after)
    torch.rand(7)  # another process would not have the same random state either
    second = fit(new_task(), recipe, parts, resume=True, device="cpu", progress="quiet")
    assert second.stopped == "finished"
    assert "continue with: saccade train --resume --out" in (parts / "log.txt").read_text()
    assert_same_run(whole, parts)
    assert measurements(whole, "validation") == measurements(parts, "validation")


def test_crash_resumes_from_the_last_periodic_checkpoint(tmp_path):
    """What was measured after the checkpoint is measured again, and stands in metrics.jsonl once."""
    recipe = tiny_recipe(checkpoint_every=4, log_every=1)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    fit(new_task(), recipe, whole, device="cpu", progress="quiet")
    task = new_task()
    task.crash_at = 10
    with pytest.raises(Crash):
        fit(task, recipe, parts, device="cpu", progress="quiet")
    with open(parts / "metrics.jsonl", "a") as file:
        file.write('{"step": 11, "kind": "train", "va')  # the line being written when it died
    fit(new_task(), recipe, parts, resume=True, device="cpu", progress="quiet")
    assert_same_run(whole, parts)
    assert measurements(whole, "train") == measurements(parts, "train")
    assert measurements(whole, "validation") == measurements(parts, "validation")


def test_validating_more_often_does_not_change_training(tmp_path):
    final = []
    for every in (1, 12):
        task = new_task()
        recipe = tiny_recipe({"steps": 12, "optimizer": SGD, "validate_every": every})
        fit(task, recipe, tmp_path / str(every), device="cpu", progress="quiet")
        final.append(weights(task))
    assert all(torch.equal(final[0][name], final[1][name]) for name in final[0])


def test_other_recipe_is_refused_naming_the_first_difference(tmp_path):
    fit(new_task(), tiny_recipe(), tmp_path / "run", device="cpu", progress="quiet")
    with pytest.raises(ConfigError, match="batch_size was 8, now 16"):
        fit(new_task(), tiny_recipe(batch_size=16), tmp_path / "run", resume=True, device="cpu", progress="quiet")
    other = tiny_recipe({"steps": 13, "optimizer": SGD, "clip_norm": 1.0})
    with pytest.raises(ConfigError, match=r"phases\.0\.steps was 12, now 13"):
        fit(new_task(), other, tmp_path / "run", resume=True, device="cpu", progress="quiet")


def test_the_state_of_an_optimiser_has_the_layout_of_its_parameter(tmp_path):
    """A file knows shapes only; fused kernels refuse a state in another layout than its parameter's."""
    parameter = torch.nn.Parameter(torch.rand(4, 3, 3, 3).contiguous(memory_format=torch.channels_last))
    optimizer = torch.optim.Adam([parameter])
    moments = {f"optimizer/w/{key}": torch.rand(4, 3, 3, 3) for key in ("exp_avg", "exp_avg_sq")}
    checkpoint = Checkpoint(tmp_path, 3, {**moments, "optimizer/w/step": torch.tensor(3.0)}, {})
    checkpoint.restore_optimizer(optimizer, {"w": parameter})
    for key in ("exp_avg", "exp_avg_sq"):
        state = optimizer.state[parameter][key]
        assert state.stride() == parameter.stride()
        assert torch.equal(state, moments[f"optimizer/w/{key}"])


def test_a_finished_run_whose_model_is_gone_gets_it_again_from_its_best_checkpoint(tmp_path):
    phase = {"steps": 12, "validate_every": 3, "optimizer": SGD, "select": {"metric": "accuracy"}}
    recipe = tiny_recipe(phase, ema=0.9, keep_checkpoints=1)
    task = new_task()
    task.scripted = [0.2, 0.9, 0.4, 0.3]
    done = fit(task, recipe, tmp_path / "run", **QUIET)
    files = {path: path.read_bytes() for path in done.model.iterdir()}
    assert json.loads((done.model / "facts.json").read_text())["step"] == done.best.step == 6
    shutil.rmtree(done.model)
    again = fit(new_task(), recipe, tmp_path / "run", resume=True, **QUIET)
    assert (again.stopped, again.model, again.step) == ("finished", done.model, 12)
    assert (done.model / "model.safetensors").read_bytes() == files[done.model / "model.safetensors"]
    assert json.loads((done.model / "facts.json").read_text())["step"] == 6
    shutil.rmtree(done.model)
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000006")
    with pytest.raises(CheckpointError, match="step-00000006"):
        fit(new_task(), recipe, tmp_path / "run", resume=True, **QUIET)


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
