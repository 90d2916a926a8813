"""Scenes made by kernels are those of the CPU to the last bit; and where there are no kernels, it is said why."""

import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest
import torch

from saccade.data.scenes import kernels
from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.drawing import render
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import SceneSpec
from saccade.data.scenes.sampler import sample_layout
from saccade.families.question.scenes import SceneData, SceneDataConfig

CUDA = torch.device("cuda")
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def assert_same(expected, found):
    for name, column in expected.tensors().items():
        assert torch.equal(getattr(found, name).cpu(), column.cpu()), name


@pytest.fixture
def fresh(monkeypatch):
    """As in a process in which no kernel has failed yet, on a machine with Triton."""
    monkeypatch.setattr(kernels, "_failure", "")
    monkeypatch.setattr(kernels, "_has_triton", lambda: True)


def test_a_kernel_that_cannot_be_built_is_given_up_with_one_warning(fresh, monkeypatch):
    monkeypatch.setattr(kernels, "why_no_kernels", lambda device, size=100: kernels._failure)
    calls = []

    def fails():
        calls.append(1)
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC")

    with pytest.warns(RuntimeWarning, match="made more slowly.*RuntimeError: Failed to find C compiler"):
        assert kernels.try_kernel(fails, torch.device("cpu"), 100) is None
    assert kernels.try_kernel(fails, torch.device("cpu"), 100) is None
    assert len(calls) == 1
    assert "C compiler" in kernels.why_no_kernels(torch.device("cpu"))
    assert "Please" not in kernels._failure


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("CUDA error: lost")])
def test_a_device_in_trouble_is_no_reason_to_go_on(fresh, monkeypatch, error):
    monkeypatch.setattr(kernels, "why_no_kernels", lambda device, size=100: "")

    def fails():
        raise error

    with pytest.raises(type(error), match="CUDA"):
        kernels.try_kernel(fails, torch.device("cpu"), 100)
    assert kernels._failure == ""


def test_scenes_do_not_change_when_the_kernels_fail(fresh, monkeypatch):
    """Every place that asks for a kernel goes on without one."""
    spec, glyphs, numbers = SceneSpec(background=Distractors()), glyphs_for("val", "pack"), torch.arange(20)
    expected = sample_layout(spec, glyphs, 0, numbers)
    pictures = render(expected)
    asked = []
    monkeypatch.setattr(kernels, "why_no_kernels", lambda device, size=100: asked.append(size) or "broken")
    found = sample_layout(spec, glyphs, 0, numbers)
    assert_same(expected, found)
    assert torch.equal(render(found), pictures)
    assert asked == [100, 100, 100]  # places, distractors, digits


INTERPRETED = """
import torch
from saccade.data.scenes import kernels
from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import SceneSpec
from saccade.data.scenes.drawing import render
from saccade.data.scenes.photographs import photographs_for
from saccade.data.scenes.sampler import sample_layout

torch.set_num_threads(1)
glyphs, plain = glyphs_for("train", "pack"), kernels.why_no_kernels
numbers = torch.tensor([0, 1, 2**33 + 7])
photographs, large = photographs_for("test"), {"size": 128, "count": (2, 5), "scale": (0.4, 4.0)}
mixed = {"background": Distractors(drawing="both"), "drawing": "both"}  # kernels have one way for all drawings
for settings in ({"background": Distractors()}, mixed, {"background": photographs, "max_tries": 20}, large):
    spec = SceneSpec(**settings)
    kernels.why_no_kernels = plain
    expected = sample_layout(spec, glyphs, 5, numbers)
    pictures = render(expected)
    kernels.why_no_kernels = lambda device, size=100: ""
    found = sample_layout(spec, glyphs, 5, numbers)
    for name, column in expected.tensors().items():
        assert torch.equal(getattr(found, name), column), name
    assert torch.equal(render(found), pictures)
    assert not kernels._failure, kernels._failure
print("equal")
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton, of any build")
def test_kernels_interpreted_on_the_host_make_the_same_scenes():
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", textwrap.dedent(INTERPRETED)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "equal", done.stderr


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("name", ["mref", "mdist", "mbg"])
@pytest.mark.parametrize(("split", "seed"), [("train", 0), ("val", 1), ("test", 2**40 + 3)])
def test_gpu_makes_the_scenes_of_the_cpu(name, split, seed):
    here, there = (SceneData(SceneDataConfig(name=name, glyphs="pack", seed=seed), split, d) for d in ("cpu", CUDA))
    numbers = torch.cat([torch.arange(1500), torch.tensor([8_191, 10**9, 2**33 + 7])])
    expected, pictures = here.stream._draw(numbers)
    found, made = there.stream._draw(numbers.to(CUDA))
    assert kernels.why_no_kernels(CUDA) == ""
    assert_same(expected, found)
    assert torch.equal(made.cpu(), pictures)
    for chunk in (1, 7, 64, 1000):  # whatever they are made with
        part, seen = there.stream._draw(numbers[100 : 100 + chunk].to(CUDA))
        assert_same(expected[100 : 100 + chunk], part)
        assert torch.equal(seen.cpu(), pictures[100 : 100 + chunk])
