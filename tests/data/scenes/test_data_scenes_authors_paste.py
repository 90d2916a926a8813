"""The authors' drawing by Pillow, worked out by hand, and how far saccade's own lies from it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from authors_paste import add, drawn, paste, resize
from saccade.data.scenes.render import render
from saccade.data.scenes.resize import resized
from saccade.families.question.scene_data import SceneData, SceneDataConfig

COLOUR = (200, 100, 50)


def pasted(ink: int, below: int = 0) -> list[int]:
    canvas = Image.new("RGB", (1, 1), (below, below, below))
    paste(canvas, np.full((1, 1), ink, np.uint8), COLOUR, 0, 0)
    return [int(value) for value in np.asarray(canvas)[0, 0]]


def test_ink_counts_twice() -> None:
    """Half ink: 200 · 128/255 = 100.4 is painted as 100; 100 · 128/255 = 50.2 is what is seen of it on black."""
    assert pasted(255) == [200, 100, 50]
    assert pasted(128) == [50, 25, 13]  # 50 · 128/255 = 25.1, painted 25, seen 12.5
    assert pasted(0) == [0, 0, 0]
    assert pasted(128, below=255) == [177, 152, 140]  # and 255 · 127/255 = 127 of the background beside it


def test_sums_of_distractors_wrap_around() -> None:
    canvas = np.full((2, 2, 3), 100, np.uint8)
    add(canvas, np.full((3, 3), 255, np.uint8), COLOUR, 1, 0)
    assert canvas[0, 1].tolist() == [(100 + 200) % 256, 200, 150]
    assert canvas[0, 0].tolist() == [100, 100, 100]


@pytest.fixture(scope="module")
def data() -> SceneData:
    return SceneData(SceneDataConfig("mref", glyphs="pack"), "test")


def test_glyphs_are_resized_alike(data: SceneData) -> None:
    glyphs = data.glyphs.images[:24]
    for side in (14, 27, 40, 83):
        ours = resized(glyphs, torch.full((24,), side), side)
        theirs = np.stack([resize(glyph.numpy(), side) for glyph in glyphs])
        assert np.abs(ours.numpy().astype(int) - theirs).max() <= 2  # of 255: Pillow sums in fixed point


def test_saccades_own_drawing_blends_once(data: SceneData) -> None:
    """On black, colour · g/255 is seen here and colour · (g/255)² there: the same where the ink is full."""
    layout = data.take(torch.arange(0, 60, 10)).scenes
    ours = render(layout).permute(0, 2, 3, 1).numpy().astype(int)
    black = np.zeros((100, 100, 3), np.uint8)
    theirs = np.stack([drawn(layout, scene, black) for scene in range(len(layout))]).astype(int)
    assert (theirs <= ours + 1).all()
    assert (ours - theirs).max() > 40, "half ink is a quarter of the colour there"
    masks = layout.all_objects().numpy()
    assert not theirs[~masks].any()
    ink = np.where(masks[..., None], ours, 0)
    full = ink >= int(layout.rgb[layout.present].max()) - 1  # the brightest there is can only be full ink
    assert full.any()
    assert np.abs(ours - theirs)[full].max() <= 2
