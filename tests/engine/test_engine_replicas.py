"""A stack of replicas trains like its members would alone."""

import json
import math

import pytest
import torch
from engine_fakes import TinyTask, read_metrics, tiny_recipe, weights
from safetensors.torch import load_file
from torch import nn

from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.loop import fit
from saccade.engine.recipe import Select
from saccade.engine.replicas import ReplicaStack, compare_replicas
from saccade.errors import ConfigError

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
