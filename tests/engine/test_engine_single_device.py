"""One device trains as Lightning Fabric would, and without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from engine_fakes import TinyTask, tiny_recipe

from saccade import devices
from saccade.engine.loop import fit

QUIET = {"device": "cpu", "progress": "quiet"}


class DeviceTask(TinyTask):
    """Moves its batches, as a task is asked to."""

    def to(self, device):
        self.device = device

    def batch(self, first, size):
        return {name: value.to(self.device) for name, value in super().batch(first, size).items()}


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_one_device_computes_as_fabric_does(tmp_path, precision):
    pytest.importorskip("tensorboard")  # with its logger a run takes Fabric
    weights = []
    for tensorboard in (False, True):
        task = TinyTask(norm=False)
        recipe = tiny_recipe({"steps": 6}, tensorboard=tensorboard)
        fit(task, recipe, tmp_path / str(tensorboard), precision=precision, **QUIET)
        weights.append(task.model.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("graph", [False, True])
def test_a_gpu_computes_as_fabric_does(tmp_path, graph):
    pytest.importorskip("tensorboard")
    weights = []
    for tensorboard in (False, True):
        task = DeviceTask(norm=False)
        recipe = tiny_recipe({"steps": 8}, tensorboard=tensorboard, graph=graph)
        fit(task, recipe, tmp_path / str(tensorboard), precision="bf16-mixed", device="cuda", progress="quiet")
        weights.append(task.model.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_one_device_does_not_import_fabric(tmp_path):
    code = (
        "import sys; from engine_fakes import TinyTask, tiny_recipe; from saccade.engine.loop import fit\n"
        f"fit(TinyTask(), tiny_recipe({{'steps': 1}}), {str(tmp_path / 'run')!r}, **{QUIET})\n"
        "print(*(name for name in ('lightning_fabric', 'torchmetrics', 'matplotlib') if name in sys.modules))"
    )
    here = Path(__file__).parent
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=here)
    assert found.stdout.strip() == ""


class Driver:
    """The calls of CUDA's driver that make a context."""

    def __init__(self, result: int = 0) -> None:
        self.called: list[str] = []
        self._result = result

    def __getattr__(self, name: str):
        return lambda *_: (self.called.append(name), self._result)[1]


def test_the_context_is_made_by_the_driver_in_the_background(monkeypatch):
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: driver)
    driver = Driver()
    thread = devices.wake_cuda("cuda:1")
    assert thread is not None
    thread.join()
    assert driver.called == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]
    driver = Driver(result=100)  # no device
    devices.wake_cuda().join()
    assert driver.called == ["cuInit"]
    assert devices.wake_cuda("cpu") is devices.wake_cuda("cuda:x") is None


def test_without_a_driver_nothing_is_woken(monkeypatch):
    def missing(name: str):
        raise OSError(name)

    monkeypatch.setattr(devices.ctypes, "CDLL", missing)
    assert devices.wake_cuda("auto") is None
