"""Resuming: N steps, a stop and N more equal 2N steps bit for bit."""

import json
import shutil

import pytest
import torch
from engine_fakes import Crash, TinyTask, read_metrics, tiny_recipe, weights

from saccade.engine.checkpoint import Checkpoint, CheckpointStore
from saccade.engine.loop import fit
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
