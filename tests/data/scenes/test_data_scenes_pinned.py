"""Scenes of every kind to the last bit: recorded results depend on them, so how they are made must not show."""

import hashlib
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.drawing import render
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import GlyphLayout, SceneSpec, join_layouts
from saccade.data.scenes.stream import GlyphStream, SceneStream
from saccade.families.caption.scenes import sample_captioned, scene_spec
from saccade.families.multiset.scenes import MultisetSpec, paint, sample_multisets

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
