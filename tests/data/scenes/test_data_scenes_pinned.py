"""Scenes of every kind to the last bit, and the counter hash behind them: recorded results depend on both."""

import hashlib
import threading
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.drawing import render
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.hashing import hash_u32, uniform_below, uniform_pair_below
from saccade.data.scenes.layout import GlyphLayout, SceneSpec, join_layouts
from saccade.data.scenes.stream import GlyphStream, Prefetcher, SceneStream
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
