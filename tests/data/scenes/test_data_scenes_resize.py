"""Integer resizing against Pillow, and the packing of rows against plain loops."""

import numpy as np
import torch
from PIL import Image

from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.placement import Occupancy, Tries
from saccade.data.scenes.resize import resized


def test_within_two_levels_of_pillow_and_the_same_ink():
    images = glyphs_for("val", "pack").images[::5]  # 40 glyphs
    ours, theirs = [], []
    for size in range(14, 84):
        sizes = torch.full((len(images),), size)
        ours.append(resized(images, sizes, 84)[:, :size, :size].numpy())
        theirs.append(
            np.stack([Image.fromarray(g.numpy()).resize((size, size), Image.Resampling.BILINEAR) for g in images])
        )
        assert np.abs(ours[-1] - theirs[-1].astype(float)).max() <= 2
    ink = sum(int((part > 0).sum()) for part in ours), sum(int((part > 0).sum()) for part in theirs)
    assert abs(ink[0] / ink[1] - 1) < 0.001


def test_padding_does_not_change_a_glyph_nor_does_autocast():
    glyph = glyphs_for("val", "pack").images[:1]
    small, large = resized(glyph, torch.tensor([19]), 21), resized(glyph, torch.tensor([19]), 84)
    assert torch.equal(small, large[:, :21, :21])
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(resized(glyph, torch.tensor([19]), 21), small)


def test_a_box_is_free_exactly_when_a_slice_is_empty():
    generator = torch.Generator().manual_seed(2)
    patch = torch.rand(4, 84, 84, generator=generator) > 0.997
    x, y = torch.tensor([0, 16, 5, 9]), torch.tensor([0, 16, 9, 2])
    canvas = torch.zeros(4, 100, 100, dtype=torch.bool)
    for n in range(4):
        canvas[n, y[n] : y[n] + 84, x[n] : x[n] + 84] = patch[n]
    occupancy = Occupancy(4, 100, 14, torch.device("cpu"))
    occupancy.add(slice(None), patch.float(), x, y)
    occupancy.refresh()
    lanes = (torch.arange(4)[:, None], torch.arange(4)[:, None])
    tries: Tries = occupancy.draw(slice(None), lanes, torch.arange(500), (14 << 16, 84 << 16))
    free = occupancy.is_free(tries)
    sides = tries.extent >> 16
    assert 0.02 < free.float().mean() < 0.9
    assert {14, 83} <= set(sides.flatten().tolist())
    for n in range(4):
        for t in range(500):
            left, top, side = int(tries.x[n, t]), int(tries.y[n, t]), int(sides[n, t])
            assert left >= 0
            assert top >= 0
            assert max(left, top) + side <= 100
            assert bool(free[n, t]) == (not canvas[n, top : top + side, left : left + side].any())
