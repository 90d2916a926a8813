"""Phases train and freeze what they say and end when they say; stacks of replicas train as their members would."""

import json
import math

import pytest
import torch
from engine_fakes import Double, Scaled, TinyTask, read_metrics, tiny_recipe, weights
from safetensors.torch import load_file
from torch import nn

from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.loop import fit
from saccade.engine.recipe import Select
from saccade.engine.replicas import ReplicaStack, compare_replicas
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


# SGD: the bias before a BatchNorm has no gradient but rounding noise, which Adam would blow up to full steps.
PHASE = {"steps": 20, "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}, "clip_norm": 0.5}


class SeededTask(TinyTask):
    """The data of seed 0 with a model of another seed."""

    def __init__(self, model_seed: int, **options) -> None:
        super().__init__(**options)
        self.model = self.new_model(model_seed)


def test_stack_of_three_equals_three_single_runs(tmp_path):
    """BatchNorm statistics and the clipped gradient stay each replica's own."""
    fit(TinyTask(), tiny_recipe(PHASE, replicas=3), tmp_path / "stack", device="cpu", progress="quiet")
    stacked = CheckpointStore(tmp_path / "stack" / "checkpoints").load_newest()[0].tensors
    for seed in range(3):
        task = SeededTask(seed)
        fit(task, tiny_recipe(PHASE), tmp_path / str(seed), device="cpu", progress="quiet")
        for name, value in weights(task).items():
            assert torch.allclose(stacked[f"model/{name}"][seed].float(), value.float(), atol=1e-5), (seed, name)
    assert not torch.allclose(stacked["model/head.weight"][0], stacked["model/head.weight"][1], atol=1e-3)


def test_best_replica_is_selected_and_published(tmp_path):
    task = TinyTask()
    task.scripted = [0.3, 0.8, 0.1]  # one validation of three replicas
    recipe = tiny_recipe({"steps": 4, "select": {}}, replicas=3)
    result = fit(task, recipe, tmp_path / "run", device="cpu", progress="quiet")
    assert (result.best.replica, result.best.value) == (1, 0.8)
    final = CheckpointStore(result.out / "checkpoints").load_newest()[0].tensors
    published = load_file(result.model / "model.safetensors")
    assert torch.equal(published["head.weight"], final["model/head.weight"][1])
    assert json.loads((result.model / "facts.json").read_text())["replica"] == 1
    for number in range(3):  # each is written at the end
        written = load_file(result.out / "replicas" / str(number) / "model.safetensors")
        assert torch.equal(written["head.weight"], final["model/head.weight"][number])
    entry = read_metrics(result.out)[-1]
    assert entry["replicas"] == {"accuracy": [0.3, 0.8, 0.1]}
    assert entry["values"]["accuracy"] == pytest.approx(0.4)
    assert entry["values"]["accuracy_std"] == pytest.approx(0.360555, abs=1e-6)


def test_what_some_replicas_have_no_value_for_is_told_of_the_others():
    """As of one that says nothing, so that there is nothing to score about where it looked."""
    found = [{"b": 0.5}, {"a": 0.25, "b": 0.5}, {"a": 0.75, "b": 0.5}]
    winner, values, beside = compare_replicas(found, Select("a"))
    assert winner == 2
    assert values == {"b": 0.5, "b_std": 0, "a": 0.5, "a_std": pytest.approx(0.353553, abs=1e-6)}
    assert beside == {"b": [0.5, 0.5, 0.5], "a": [pytest.approx(math.nan, nan_ok=True), 0.25, 0.75]}
    assert compare_replicas(found[:2], None)[1]["a"] == 0.25
    nan = [{"a": math.nan}, {"a": 0.1}, {"a": 0.3}]  # never leads
    assert compare_replicas(nan, Select("a"))[0] == 2
    assert math.isnan(compare_replicas(nan, Select("a"))[1]["a_std"])


class Tied(nn.Module):
    """Encoder and decoder share one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("shift", torch.ones(3))

    def forward_raw(self, x):
        return {"y": self.second(self.first(x)) + self.shift}


def test_tied_weights_stay_tied():
    models = [Tied() for _ in range(2)]
    stack = ReplicaStack(models)
    assert stack.model.first.weight is stack.model.second.weight
    x = torch.randn(4, 3)
    out = stack(x=x)["y"]
    for index, model in enumerate(models):
        assert torch.allclose(out[index], model.forward_raw(x)["y"], atol=1e-6)
        assert torch.allclose(stack.replica(index).forward_raw(x)["y"], out[index], atol=1e-6)


def test_a_layer_that_cannot_be_stacked_is_named():
    model = nn.Sequential(nn.Linear(3, 3), nn.GRU(3, 3))
    with pytest.raises(ConfigError, match=r"replicas: Sequential has a layer GRU, .*set replicas: 1"):
        ReplicaStack([model, model])
