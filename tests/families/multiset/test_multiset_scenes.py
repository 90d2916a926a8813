"""Scenes of sets and multisets: as the released generator draws them, reproducible to the bit, free of overlap."""

import pytest
import torch

from saccade.data.scenes.backgrounds import strewn
from saccade.data.scenes.drawing import resized
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import GlyphLayout
from saccade.families.multiset.scenes import MultisetSpec, paint, sample_multisets
from scene_digests import layout_digest

SPEC = MultisetSpec()
SET = MultisetSpec(repeats=False)


def sample(numbers: torch.Tensor, spec: MultisetSpec = SPEC, seed: int = 0) -> GlyphLayout:
    return sample_multisets(spec, glyphs_for("train", "pack"), seed, numbers)


@pytest.fixture(scope="module")
def thousand() -> GlyphLayout:
    return sample(torch.arange(1000))


def test_counts_sizes_and_digits_are_spread_as_in_the_paper():
    layout = sample(torch.arange(6000), seed=5)
    counts = torch.bincount(layout.count, minlength=5) / 6000
    assert counts[0] == 0
    assert (counts[1:] - 0.25).abs().max() < 0.02
    sides = layout.side[layout.present]
    assert (int(sides.min()), int(sides.max())) == (20, 50)
    assert abs(sides.double().mean() - 35) < 0.3
    classes = torch.bincount(layout.classes[layout.present], minlength=10) / layout.present.sum()
    assert (classes - 0.1).abs().max() < 0.01
    assert torch.equal(layout.glyphs.labels[layout.glyph], layout.classes)


def test_a_multiset_repeats_digits_and_a_set_does_not():
    def share_with_repeats(spec: MultisetSpec) -> float:
        layout = sample(torch.arange(3000), spec)
        rows = [row[:count].tolist() for row, count in zip(layout.classes, layout.count.tolist())]
        return sum(len(set(row)) < len(row) for row in rows) / len(rows)

    assert share_with_repeats(SET) == 0
    # 1 to 4 digits, each as often: 1 − (1 + 0.9 + 0.9·0.8 + 0.9·0.8·0.7) / 4
    assert share_with_repeats(SPEC) == pytest.approx(0.219, abs=0.02)


def test_digits_have_cells_as_large_as_the_largest_and_come_in_reading_order(thousand):
    for b in range(300):
        boxes = thousand.boxes[b][thousand.present[b]].tolist()
        cell = max(x1 - x0 for x0, _, x1, _ in boxes)
        corners = [(y0 // cell, x0 // cell) for x0, y0, _, _ in boxes]
        assert corners == sorted(set(corners))
        for (row, column), (_, _, x1, y1) in zip(corners, boxes):
            assert x1 <= (column + 1) * cell <= 100
            assert y1 <= (row + 1) * cell <= 100


def test_pictures_are_clutter_with_the_digits_written_over_it(thousand):
    """Each pixel by hand: the clutter, then of every digit the pixels that have ink."""
    part = thousand[:12]
    expected = strewn(part.glyphs, 0, part.index, 100, 8).long()
    for b in range(12):
        for k in range(int(part.count[b])):
            x, y, side = int(part.x[b, k]), int(part.y[b, k]), int(part.side[b, k])
            ink = resized(part.glyphs.images[part.glyph[b, k]][None], torch.tensor([side]), side)[0].long()
            window = expected[b, y : y + side, x : x + side]
            window[ink > 0] = ink[ink > 0]
    images = paint(part, SPEC)
    assert images.shape == (12, 3, 100, 100)
    for channel in range(3):
        assert torch.equal(images[:, channel].long(), expected)


def test_empty_scenes_leave_the_others_as_they_are(thousand):
    some = sample(torch.arange(1000), MultisetSpec(empty=0.1))
    empty = some.count == 0
    assert 60 < int(empty.sum()) < 140
    kept = (~empty).nonzero().squeeze(1)
    assert layout_digest(some[kept]) == layout_digest(thousand[kept])
    assert sample(torch.arange(50), MultisetSpec(empty=1.0)).count.sum() == 0


def test_one_object_is_one_digit_of_a_scene():
    alone = sample(torch.arange(500), MultisetSpec(repeats=False, alone=True))
    whole = sample(torch.arange(500), SET)
    assert alone.present.shape == (500, 1)
    assert alone.present.all()
    same = (whole.glyph == alone.glyph) & (whole.boxes == alone.boxes).all(-1) & whole.present  # (500, 4)
    assert (same.sum(1) == 1).all()
    assert len(set(same.float().argmax(1).tolist())) == 4  # any of them, not always the first
    pictures, full = paint(alone, SPEC), paint(whole, SPEC)
    inside = alone.masks()[:, 0]
    assert torch.equal(pictures[:, 0][inside], full[:, 0][inside])


@pytest.mark.parametrize("size", [40, 41, 59, 99])
def test_small_and_odd_sizes_have_room(size):
    spec = MultisetSpec(size=size, clutter=400)
    layout = sample(torch.arange(300), spec)
    assert int(layout.boxes.max()) <= size
    assert (layout.masks().sum(dim=1) <= 1).all()
    assert paint(layout, spec).shape == (300, 3, size, size)
