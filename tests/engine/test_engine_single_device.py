"""One device trains as Lightning Fabric would, and without it."""

from __future__ import annotations

import sys

import pytest
import torch
from engine_fakes import DeviceTask, TinyTask, tiny_recipe

from saccade.engine import loop
from saccade.engine.loop import fit
from saccade.errors import MissingExtraError

QUIET = {"device": "cpu", "progress": "quiet"}


def trained_by_fabric(monkeypatch, task, recipe, out, *, device="cpu"):
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator=device, devices=1, precision=recipe.precision)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "pick_hardware", lambda *_: fabric)
        fit(task, recipe, out, progress="quiet", device=device)
    return task.model.state_dict()


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_one_device_computes_as_fabric_does(tmp_path, monkeypatch, precision):
    one, other = TinyTask(norm=False), TinyTask(norm=False)
    recipe = tiny_recipe({"steps": 6}, precision=precision)
    fit(one, recipe, tmp_path / "one", **QUIET)
    found = trained_by_fabric(monkeypatch, other, recipe, tmp_path / "other")
    assert all(torch.equal(value, found[name]) for name, value in one.model.state_dict().items())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("graph", [False, True])
def test_a_gpu_computes_as_fabric_does(tmp_path, monkeypatch, graph):
    one, other = DeviceTask(norm=False), DeviceTask(norm=False)
    recipe = tiny_recipe({"steps": 8}, precision="bf16-mixed", graph=graph)
    fit(one, recipe, tmp_path / "one", device="cuda", progress="quiet")
    found = trained_by_fabric(monkeypatch, other, recipe, tmp_path / "other", device="cuda")
    assert all(torch.equal(value, found[name]) for name, value in one.model.state_dict().items())


def test_several_devices_without_fabric_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    with pytest.raises(MissingExtraError, match="distributed"):
        fit(TinyTask(), tiny_recipe(), tmp_path / "run", devices=2, **QUIET)
    assert not (tmp_path / "run").exists()
