"""Scenes: the counter hash, calibrated, free of overlap, editable, and of every kind and by kernels to the last bit."""

import hashlib
import importlib.util
import os
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.data.scenes import kernels
from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.drawing import _inked_on_device, inked_pixels, render, resized
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.hashing import hash_u32, uniform_below, uniform_pair_below
from saccade.data.scenes.layout import GlyphLayout, SceneLayout, SceneSpec, join_layouts
from saccade.data.scenes.sampler import sample_layout
from saccade.data.scenes.stream import GlyphStream, Prefetcher, SceneStream
from saccade.errors import DataError
from saccade.families.caption.scenes import sample_captioned, scene_spec
from saccade.families.multiset.scenes import MultisetSpec, paint, sample_multisets
from saccade.families.question.scenes import SceneData, SceneDataConfig


def plain_hash(seed: int, *counters: int) -> int:
    """The same function in Python's unbounded integers, written from the module's description."""

    def mix(x: int) -> int:
        x ^= x >> 16
        x = x * 0x7FEB352D % 2**32
        x ^= x >> 15
        x = x * 0x846CA68B % 2**32
        return x ^ (x >> 16)

    a, b = 0x243F6A88, 0x85A308D3
    for counter in (seed, *counters):
        a = mix(a ^ counter % 2**32)
        b = mix((b + a) % 2**32 ^ counter >> 32)
    return b


def test_values_are_pinned():
    """Every recorded result depends on these numbers: a change here is a new data set."""
    assert hash_u32(0, torch.arange(3)).tolist() == [2512016629, 3013776045, 957188526]


@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**62), min_size=1, max_size=4))
def test_agrees_with_unbounded_integers(seed, counters):
    tensors = [torch.tensor([counter]) for counter in counters]
    assert hash_u32(seed, *tensors).tolist() == [plain_hash(seed, *counters)]


def test_uniform_below_reaches_both_ends():
    assert uniform_below(torch.tensor([0, 2**32 - 1, 2**31]), 10).tolist() == [0, 9, 5]
    first, second = uniform_pair_below(hash_u32(0, torch.arange(200_000)), 7)
    joint = torch.bincount(first * 7 + second, minlength=49).double()
    assert ((joint - 200_000 / 49) ** 2 / (200_000 / 49)).sum() < 90  # 48 degrees of freedom


NUMBERS = torch.cat([torch.arange(60), torch.tensor([511, 512, 8_191, 8_192, 10**9, 2**33 + 7])])


@dataclass(frozen=True)
class Ramp:
    """A background that differs from pixel to pixel and from scene to scene, so that blending shows."""

    name: str = "ramp"

    def __call__(self, glyphs, seed, indices, size):
        plane = torch.arange(3 * size * size).view(3, size, size)
        return ((plane + indices[:, None, None, None]) % 256).byte()


class Captioned(GlyphStream):
    def _draw(self, numbers):
        layout = sample_captioned(self.spec, self.glyphs, self.seed, numbers)
        return layout, render(layout)


class Multisets(GlyphStream):
    def _draw(self, numbers):
        layout = sample_multisets(self.spec, self.glyphs, self.seed, numbers)
        return layout, paint(layout)


def stream(kind: str) -> GlyphStream:
    glyphs = glyphs_for("train", "pack")
    if kind == "captions":
        return Captioned(scene_spec(100, 0.1), glyphs, 7)
    if kind == "multisets":
        return Multisets(MultisetSpec(empty=0.1), glyphs, 7)
    if kind == "sets":
        return Multisets(MultisetSpec(repeats=False, alone=True), glyphs, 7)
    backgrounds = {"black": {}, "distractors": {"background": Distractors()}, "ramp": {"background": Ramp()}}
    spec = SceneSpec(size=160, count=(2, 10), scale=(0.4, 4.0)) if kind == "large" else SceneSpec(**backgrounds[kind])
    return SceneStream(spec, glyphs, 7)


def digest(layout: GlyphLayout, images: Tensor) -> str:
    content = hashlib.sha256()
    columns = ("index", "classes", "glyph", "colour", "noise", "extent", "x", "y", "present")
    for column in (*(getattr(layout, name) for name in columns if hasattr(layout, name)), images):
        content.update(column.contiguous().numpy().tobytes())
    return content.hexdigest()[:16]


PINNED = {
    "black": "e89efbaf6128a48c",
    "distractors": "19cc0449b8e4d5ff",
    "ramp": "f8ff4111c8bfc2d5",
    "large": "274291abd8f13bf5",
    "captions": "e15f938bcca63ab1",
    "multisets": "8c7f31b63fca429b",
    "sets": "9500cff4de2935c8",
}


@pytest.mark.parametrize("kind", PINNED)
def test_layouts_and_pictures_are_pinned(kind):
    assert digest(*stream(kind).scenes(NUMBERS)) == PINNED[kind]


@pytest.mark.parametrize("kind", PINNED)
def test_scenes_depend_on_neither_batch_nor_order(kind):
    whole, pictures = stream(kind).scenes(torch.arange(300))
    for batch, count in ((1, 10), (7, 70), (128, 300)):
        order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
        parts = [stream(kind)._draw(part) for part in order.split(batch)]
        made = join_layouts([layout for layout, _ in parts]), torch.cat([images for _, images in parts])
        assert digest(*made) == digest(whole[order], pictures[order])


CPU = torch.device("cpu")


def test_what_was_begun_is_handed_over_and_made_once():
    made = []

    def make(number):
        made.append((number, threading.current_thread().name))
        return number * 10

    ahead = Prefetcher(make, CPU)
    ahead.start(3)
    ahead.start(3)
    assert ahead.take(3) == 30
    assert [number for number, _ in made] == [3]
    assert made[0][1].startswith("ahead")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_an_endless_stream_is_the_same_with_and_without_looking_ahead():
    config = SceneDataConfig(glyphs="pack")
    ahead, here = (SceneData(config, "train", device="cuda") for _ in range(2))
    here.stream._ahead = None
    for data in (ahead, here):
        data.stream.chunk = 512
    for start in range(0, 4096, 256):
        numbers = torch.arange(start, start + 256)
        assert torch.equal(ahead.take(numbers).images, here.take(numbers).images)


def training(chunk: int) -> SceneData:
    data = SceneData(SceneDataConfig(glyphs="pack", asks=4), "train")
    data.stream.chunk = chunk
    return data


def test_a_batch_is_the_same_wherever_training_begins():
    """In the middle of a chunk, across the border of two, after a jump back: what a number asks for stays."""
    whole = training(chunk=512).take(torch.arange(4 * 160), together=4)
    data = training(chunk=64)
    for start, stop in ((64, 96), (0, 32), (48, 80), (96, 160), (60, 70)):
        part = data.take(torch.arange(4 * start, 4 * stop), together=4)
        assert torch.equal(part.images, whole.images[start:stop])
        for name in ("query", "label", "object", "scene"):
            assert torch.equal(getattr(part, name), getattr(whole, name)[4 * start : 4 * stop]), name


SPEC = SceneSpec()


def sample(numbers: torch.Tensor, seed: int = 0) -> SceneLayout:
    return sample_layout(SPEC, glyphs_for("train", "pack"), seed, numbers)


@pytest.fixture(scope="module")
def scenes() -> SceneLayout:
    return sample(torch.arange(64))


def test_boxes_lie_inside_and_hold_no_earlier_ink(scenes):
    masks, boxes = scenes.masks(), scenes.boxes
    assert (masks.sum(dim=1) <= 1).all()
    for b in range(len(scenes)):
        for k in range(int(scenes.count[b])):
            x0, y0, x1, y1 = boxes[b, k].tolist()
            assert 0 <= x0 < x1 <= 100
            assert 0 <= y0 < y1 <= 100
            assert x1 - x0 == y1 - y0 >= 14
            assert not masks[b, :k, y0:y1, x0:x1].any()
            outside = masks[b, k].clone()
            outside[y0:y1, x0:x1] = False
            assert masks[b, k].any()
            assert not outside.any()
    assert (boxes[~scenes.present] == 0).all()


def test_pictures_are_colour_times_ink(scenes):
    """Each pixel is round(colour · ink / 255), worked out here object by object; black elsewhere."""
    part = scenes[:12]
    expected = torch.zeros(12, 3, 100, 100, dtype=torch.int64)
    for b in range(12):
        for k in range(int(part.count[b])):
            x, y, side = int(part.x[b, k]), int(part.y[b, k]), int(part.side[b, k])
            glyph = part.glyphs.images[part.glyph[b, k]][None]
            ink = resized(glyph, torch.tensor([side]), side)[0].long()
            coloured = (2 * part.rgb[b, k][:, None, None] * ink + 255) // 510
            expected[b, :, y : y + side, x : x + side] += coloured  # objects share no pixel
    images = render(part)
    assert images.dtype == torch.uint8
    assert torch.equal(images.long(), expected)


def test_ink_as_a_gpu_lists_it_is_that_of_the_host(scenes):
    """By torch's own operations, here on the CPU: in another order."""
    one, other = (
        sorted(zip(*(column.tolist() for column in listed(scenes)))) for listed in (_inked_on_device, inked_pixels)
    )
    assert one == other


def test_move_carries_the_pixels_along(scenes):
    obj = torch.zeros(64, dtype=torch.int64)
    moved = scenes.move(obj, torch.zeros(64), torch.zeros(64))
    alone = torch.zeros_like(scenes.present).scatter(1, obj[:, None], True)
    others_before, others_after = render(scenes.remove(obj)), render(moved.remove(obj))
    assert torch.equal(others_before, others_after)
    first, second = render(replace(scenes, present=alone)), render(replace(moved, present=alone))
    for b in range(64):
        x, y, side = int(scenes.x[b, 0]), int(scenes.y[b, 0]), int(scenes.side[b, 0])
        assert torch.equal(first[b, :, y : y + side, x : x + side], second[b, :, :side, :side])
    assert torch.equal(moved[torch.arange(5)].boxes[:, 0, :2], torch.zeros(5, 2, dtype=torch.int64))


def test_an_overlapping_move_shows_the_later_slot(scenes):
    """Object 0 put on object 1: masks stay disjoint, and the later one keeps all its pixels."""
    fits = scenes.side[:, 0] <= 100 - torch.maximum(scenes.x[:, 1], scenes.y[:, 1])
    part = scenes[fits.nonzero().squeeze(1)]
    assert len(part) > 20
    moved = part.move(torch.zeros(len(part), dtype=torch.int64), part.x[:, 1], part.y[:, 1])
    masks = moved.masks()
    assert (masks.sum(dim=1) <= 1).all()
    assert torch.equal(masks[:, 1], part.masks()[:, 1])
    assert (moved.all_objects() == masks.any(dim=1)).all()


def test_a_crowded_picture_is_named():
    crowded = SceneSpec(size=60, count=(9, 9), scale=(1.5, 2.0), max_tries=3)
    with pytest.raises(DataError, match="no room"):
        sample_layout(crowded, glyphs_for("val", "pack"), 0, torch.arange(2))


def test_padding_does_not_change_a_glyph_nor_does_autocast():
    glyph = glyphs_for("val", "pack").images[:1]
    small, large = resized(glyph, torch.tensor([19]), 21), resized(glyph, torch.tensor([19]), 84)
    assert torch.equal(small, large[:, :21, :21])
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(resized(glyph, torch.tensor([19]), 21), small)


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
from saccade.data.scenes.photo_backgrounds import photographs_for
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
