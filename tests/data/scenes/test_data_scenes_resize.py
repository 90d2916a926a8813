"""Integer resizing against Pillow."""

import numpy as np
import torch
from PIL import Image

from saccade.data.scenes.glyphs import glyphs_for
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
