"""Multisets as scenes and batches: drawn as released, in reading order or shuffled, with the evidence of labels."""

import pytest
import torch

from saccade.data.pictures.augment import Augmentation
from saccade.data.scenes.backgrounds import strewn
from saccade.data.scenes.drawing import resized
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import GlyphLayout
from saccade.families.multiset.data import MultisetDataConfig, MultisetScenes
from saccade.families.multiset.scenes import MultisetSpec, paint, sample_multisets

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
    images = paint(part)
    assert images.shape == (12, 3, 100, 100)
    for channel in range(3):
        assert torch.equal(images[:, channel].long(), expected)


def generated(name: str = "mnist-multiset", split: str = "val", **settings) -> MultisetScenes:
    return MultisetScenes(MultisetDataConfig(name, glyphs="pack", **settings), split)


def test_labels_come_first_and_have_their_boxes_and_masks():
    batch = generated().take(torch.arange(60))
    counts = batch.present.sum(1)
    assert torch.equal(batch.present, torch.arange(4) < counts[:, None])
    assert torch.equal(batch.boxes.isfinite().all(-1), batch.present)
    assert batch.boxes[~batch.present].isnan().all()
    masks = batch.masks()
    assert masks.shape == (60, 4, 100, 100)
    assert torch.equal(masks.flatten(2).any(-1), batch.present)
    for b in range(60):
        for k in range(int(counts[b])):
            x0, y0, x1, y1 = batch.boxes[b, k].int().tolist()
            assert masks[b, k].sum() == masks[b, k, y0:y1, x0:x1].sum()
            assert (batch.images[b, 0][masks[b, k]] > 0).all()


def test_empty_scenes_are_in_training_only_unless_asked_for():
    def empty(data: MultisetScenes) -> float:
        return float((data.take(torch.arange(1024)).present.sum(1) == 0).float().mean())

    assert empty(generated(split="train")) == pytest.approx(0.03, abs=0.015)
    assert empty(generated(split="train", empty=0.0)) == 0
    assert empty(generated(split="test")) == empty(generated(split="val", empty=0.5)) == 0
    assert empty(generated(split="test", options={"empty_held_out": 0.5})) == pytest.approx(0.5, abs=0.04)
    assert empty(generated("mnist-single", "train", empty=0.5)) == 0


def test_a_seed_shuffles_labels_with_their_places():
    data = generated(split="train")
    plain, mixed = data.take(torch.arange(300)), data.take(torch.arange(300)).shuffled(7)
    again, other = data.take(torch.arange(300)).shuffled(7), data.take(torch.arange(300)).shuffled(8)
    assert torch.equal(mixed.labels, again.labels)
    assert not torch.equal(mixed.boxes.nan_to_num(), other.boxes.nan_to_num())
    assert torch.equal(plain.counts(10), mixed.counts(10))
    assert torch.equal(plain.present, mixed.present)  # padding stays behind
    assert torch.equal(plain.images, mixed.images)
    mixed_masks, masks = mixed.masks(), plain.masks()
    for b in range(20):
        for k in range(int(mixed.present[b].sum())):
            (was,) = (plain.boxes[b] == mixed.boxes[b, k]).all(-1).nonzero().flatten().tolist()
            assert plain.labels[b, was] == mixed.labels[b, k]
            assert torch.equal(mixed_masks[b, k], masks[b, was])


def test_training_pictures_are_varied_by_a_seed_and_their_boxes_follow():
    turned = MultisetDataConfig(glyphs="pack", augment=Augmentation(area=(1.0, 1.0), aspect=1.0))  # mirrors half
    plain, numbers = MultisetScenes(MultisetDataConfig(glyphs="pack"), "train"), torch.arange(40)
    data = MultisetScenes(turned, "train")
    varied, again, still = data.take(numbers, vary=3), data.take(numbers, vary=3), plain.take(numbers)
    assert torch.equal(varied.images, again.images)
    assert torch.equal(data.take(numbers).images, still.images)  # nobody asked
    assert torch.equal(plain.take(numbers, vary=3).images, still.images)  # nobody said how
    assert torch.equal(varied.labels, still.labels)
    mirrored = (varied.images - still.images).abs().flatten(1).amax(1) > 0.01
    assert 8 < int(mirrored.sum()) < 32
    torch.testing.assert_close(varied.images[mirrored], still.images[mirrored].flip(-1))
    flipped = still.boxes[mirrored][..., [2, 1, 0, 3]] * torch.tensor([-1, 1, -1, 1]) + torch.tensor([100, 0, 100, 0])
    torch.testing.assert_close(varied.boxes[mirrored], flipped, equal_nan=True)
    ink = varied.images[:, 0] > 0
    assert (varied.masks().any(1) & ink).sum() > 0.9 * ink.sum()  # boxes hold the digits, and clutter is little
