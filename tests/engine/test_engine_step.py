"""Static buffers of a captured step, and the captured step itself where there is a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from engine_fakes import DeviceTask, read_metrics, tiny_recipe, weights
from torch import Tensor

from saccade.engine import TrainingStopped, fit
from saccade.engine.cuda_graph import clone_tensors, copy_tensors
from saccade.errors import DataError


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


@dataclass(frozen=True)
class Inner:
    box: Tensor


@dataclass(frozen=True)
class Batch:
    image: Tensor
    inner: Inner
    pair: Pair
    name: str
    more: dict[str, list[Tensor]]


def make(value: float, name: str = "x") -> Batch:
    filled = torch.full((2,), value)
    return Batch(filled, Inner(filled + 1), Pair(filled + 2, filled + 3), name, {"a": [filled + 4]})


def test_copy_reaches_every_tensor_and_keeps_the_buffers():
    static = clone_tensors(make(1.0))
    pointer = static.inner.box.data_ptr()
    copy_tensors(static, make(10.0))
    assert static.image.tolist() == [10, 10]
    assert static.inner.box.tolist() == [11, 11]
    assert static.pair.right.tolist() == [13, 13]
    assert static.more["a"][0].tolist() == [14, 14]
    assert static.inner.box.data_ptr() == pointer


@pytest.mark.parametrize(
    ("target", "source", "words"),
    [
        ({"a": torch.ones(2)}, {"a": torch.ones(3)}, r"\(2,\)"),
        ({"a": torch.ones(2)}, {"a": torch.ones(2).int()}, "float32"),
        ({"a": torch.ones(2)}, {"b": torch.ones(2)}, "'b'"),
        ([torch.ones(2)], [], "None"),
        (make(1.0), make(1.0, "y"), "'x'"),
    ],
)
def test_a_batch_of_another_make_is_refused(target, source, words):
    with pytest.raises(DataError, match=words):
        copy_tensors(target, source)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("optimizer", ["adamw", "adam", "rmsprop", "sgd"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_captured_step_equals_the_eager_one(tmp_path, optimizer, replicas):
    final = []
    # A bias before a BatchNorm has no gradient but rounding noise; a small eps would make whole steps of that noise.
    extra = {"momentum": 0.9} if optimizer == "sgd" else {"eps": 1e-3}
    for graph in (False, True):
        phase = {
            "steps": 20,
            "optimizer": {"name": optimizer, "lr": 0.02, **extra},
            "schedule": {"name": "cosine", "warmup": 5},
            "clip_norm": 0.5,
        }
        recipe = tiny_recipe(phase, graph=graph, accumulate=2, replicas=replicas, ema=0.9)
        out = tmp_path / str(graph)
        fit(DeviceTask(), recipe, out, device="cuda", progress="quiet")
        final.append([entry["values"] for entry in read_metrics(out)])
    for eager, captured in zip(*final, strict=True):
        assert captured == pytest.approx(eager, rel=1e-3, abs=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("graph", [False, True])
def test_fault_on_the_device_names_the_step_although_it_is_read_later(tmp_path, graph):
    recipe = tiny_recipe({"steps": 20}, graph=graph, log_every=10)
    with pytest.raises(TrainingStopped, match="step 6 "):
        fit(DeviceTask(poison_at=8 * 5), recipe, tmp_path / "run", device="cuda", progress="quiet")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_resume_of_a_captured_run(tmp_path):
    recipe = tiny_recipe({"steps": 20, "optimizer": {"name": "adamw"}}, graph=True)
    whole = DeviceTask(dropout=0.0)
    fit(whole, recipe, tmp_path / "whole", device="cuda", progress="quiet")
    first, second = DeviceTask(), DeviceTask()
    first.signal_at = 9
    fit(first, recipe, tmp_path / "parts", device="cuda", progress="quiet")
    fit(second, recipe, tmp_path / "parts", resume=True, device="cuda", progress="quiet")
    for name, value in weights(whole).items():
        assert torch.allclose(value.float(), weights(second)[name].float(), atol=1e-5), name
