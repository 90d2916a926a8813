"""Where the time of a start goes, and what one device does without: Fabric."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from engine_fakes import TinyTask, tiny_recipe

from saccade import devices
from saccade.engine import start_up
from saccade.engine.loop import fit
from saccade.engine.start_up import StartUp

QUIET = {"device": "cpu", "progress": "quiet"}


class DeviceTask(TinyTask):
    """Moves its batches, as a task is asked to."""

    def to(self, device):
        self.device = device

    def batch(self, first, size):
        return {name: value.to(self.device) for name, value in super().batch(first, size).items()}


def test_a_clock_adds_up_what_was_spent(monkeypatch):
    now = iter([10.0, 12.0, 12.01, 13.5, 14.0])
    monkeypatch.setattr(start_up.time, "monotonic", lambda: next(now))
    clock = StartUp()
    for what in ("imports", "model", "data", "imports"):
        clock.lap(what)
    assert str(clock) == "start-up 4.0 s: imports 2.5, data 1.5"
    assert clock.parts == pytest.approx({"imports": 2.5, "model": 0.01, "data": 1.49})


def test_a_command_counts_from_the_start_of_its_process_and_its_second_training_does_not(monkeypatch):
    monkeypatch.setattr(start_up, "_age_of_process", lambda: 100.0)
    start_up.command_began()
    first, second = StartUp(), StartUp()
    for clock in (first, second):
        clock.lap("imports")
    assert first.seconds >= 100
    assert second.seconds < 100


def test_the_age_of_a_process_counts_from_its_start(monkeypatch):
    ticks = [str(number) for number in range(1, 60)]
    ticks[18] = str(int(997.5 * os.sysconf("SC_CLK_TCK")))  # since boot
    monkeypatch.setattr(start_up.Path, "read_text", lambda self: f"7 (a) name) S {' '.join(ticks)}")
    monkeypatch.setattr(start_up.time, "clock_gettime", lambda clock: 1000.0)
    assert start_up._age_of_process() == pytest.approx(2.5)
    monkeypatch.setattr(start_up.Path, "read_text", lambda self: "nothing")
    assert start_up._age_of_process() == 0


def test_every_run_says_in_its_log_where_the_time_went(tmp_path):
    fit(TinyTask(), tiny_recipe({"steps": 3}), tmp_path / "run", **QUIET)
    said = [line for line in (tmp_path / "run" / "log.txt").read_text().splitlines() if "start-up" in line]
    assert len(said) == 1
    assert re.search(r" start-up \d+\.\d s", said[0])


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
