"""Phases train what they say, freeze what they say, and end when they say."""

import json

import pytest
import torch
from engine_fakes import Double, Scaled, TinyTask, tiny_recipe, weights
from safetensors.torch import load_file

from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.loop import fit
from saccade.errors import ConfigError

ADAMW = {"name": "adamw", "lr": 0.05, "weight_decay": 0.1}


def run(tmp_path, task, *phases, **changes):
    return fit(task, tiny_recipe(*phases, **changes), tmp_path / "run", device="cpu", progress="quiet")


@pytest.mark.parametrize("patterns", [{"train": ["head.*"]}, {"freeze": ["stem.*"]}], ids=["train-head", "freeze-stem"])
def test_frozen_parameters_and_statistics_do_not_move_a_bit(tmp_path, patterns):
    task = TinyTask()
    before = weights(task)
    run(tmp_path, task, {"steps": 5, "optimizer": ADAMW, **patterns})
    after = weights(task)
    for name in before:
        moved = not torch.equal(before[name], after[name])
        assert moved == name.startswith("head."), name


def test_early_stop_keeps_the_best(tmp_path):
    """Scores 0.2 0.5 0.4 0.5: best at the second validation, a tie is no improvement, patience 2 ends at the fourth."""
    task = TinyTask()
    task.scripted = [0.2, 0.5, 0.4, 0.5, 0.9]
    result = run(tmp_path, task, {"steps": 50, "validate_every": 3, "patience": 2, "select": {}})
    assert (result.stopped, result.step) == ("early", 12)
    assert (result.best.value, result.best.step) == (0.5, 6)
    facts = json.loads((result.out / "model" / "facts.json").read_text())
    assert (facts["step"], facts["metrics"]) == (6, {"accuracy": 0.5})
    kept = sorted(path.name for path in (result.out / "checkpoints").iterdir())
    assert "step-00000006" in kept
    assert not torch.equal(load_file(result.model / "model.safetensors")["head.weight"], weights(task)["head.weight"])


def test_what_was_validated_goes_on_into_the_next_phase(tmp_path):
    """With a moving average that is the average: what the next phase freezes is what the first was judged by."""
    first = {"name": "all", "steps": 9, "validate_every": 3, "select": {}, "restore_best": True, "optimizer": ADAMW}
    second = {"name": "head", "steps": 12, "freeze": ["stem.*"], "select": {}, "optimizer": ADAMW}
    published, present = [], []
    for number, phases in enumerate([(first,), (first, second)]):
        task = TinyTask()
        task.scripted = [0.2, 0.9, 0.4, 0.5]
        result = run(tmp_path / str(number), task, *phases, ema=0.99)
        published.append(load_file(result.model / "model.safetensors"))
        present.append(weights(task))
    assert not torch.equal(published[0]["stem.0.weight"], present[0]["stem.0.weight"])  # its average, and its best one
    for name in (name for name in published[0] if name.startswith("stem.") and not name.endswith("tracked")):
        assert torch.equal(present[1][name], published[0][name]), name
        assert torch.equal(published[1][name], published[0][name]), name
    newest = CheckpointStore(result.out / "checkpoints").load_newest()[0].tensors
    assert int(newest["ema_updates"]) == 12  # the head's average forgets how it was before this phase


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ({"train": ["haed.*"]}, r"'haed\.\*'.*'head\.\*'"),
        ({"freeze": ["*"]}, "phase 'b'.*'freeze'"),
        ({"loss": "dobule"}, "'dobule'.*'double'"),
        ({"loss": {"name": "default", "tiems": 3}}, "'loss.tiems'.*'times'"),
        ({"loss": {"name": "double", "times": 3}}, r"loss\.times"),
        ({"select": {"metric": "acuracy"}}, "phase 'b'.*'acuracy'.*'accuracy'"),
    ],
)
def test_a_mistake_in_the_last_phase_is_found_before_training(tmp_path, mistake, named):
    with pytest.raises(ConfigError, match=named):
        run(tmp_path, TinyTask(), {"name": "a", "steps": 3}, {"name": "b", "steps": 3, **mistake})
    assert not (tmp_path / "run").exists()


def test_the_loss_of_every_phase_is_built_once_before_the_first_step_and_reaches_it(tmp_path):
    """The doubled loss has twice the gradient, so plain SGD moves twice as far in one step."""
    plain = {"optimizer": {"name": "sgd", "lr": 0.1}, "train": ["head.*"], "steps": 1}
    moved = []
    for number, loss in enumerate(({"name": "default", "times": 1.0}, "double")):
        task = TinyTask(norm=False)
        before = weights(task)["head.weight"]
        phases = {"name": "a", "loss": loss, **plain}, {"name": "b", "steps": 1, "optimizer": {"lr": 1e-30}}
        run(tmp_path / str(number), task, *phases)
        everything = tuple(name for name, _ in task.model.named_parameters())
        expected = Double() if number else Scaled(1.0)
        assert task.built == [(expected, ("head.weight", "head.bias")), (Scaled(1.0), everything)]
        moved.append(weights(task)["head.weight"] - before)
    assert torch.allclose(moved[1], 2 * moved[0], atol=1e-6)
