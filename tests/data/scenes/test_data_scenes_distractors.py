"""MDIST: crops of the split's own glyphs, added by whole numbers, the same for every batch and order."""

import hashlib
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import torch

from authors_paste import add
from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.drawing import COLOURS, rgb
from saccade.data.scenes.glyphs import GlyphSet, glyphs_for
from saccade.data.scenes.hashing import hash_state, hash_words, rounded_normal
from saccade.data.scenes.resize import resized

FIRST_HUNDRED = "4bb4d1097feadc69403d56b02cc9fbf38231d934e5897e6e7ad14e5e6d86e4d1"
MDIST = Distractors()


def painted(numbers: torch.Tensor, *, seed: int = 0, glyphs: GlyphSet | None = None, **settings) -> torch.Tensor:
    return Distractors(**settings)(glyphs or glyphs_for("train", "pack"), seed, numbers, 100)


def uniform_glyphs(image: torch.Tensor) -> GlyphSet:
    """Ten glyphs, all alike."""
    return GlyphSet(image[None].repeat(10, 1, 1), torch.arange(10), "test")


WHITE = uniform_glyphs(torch.full((28, 28), 255, dtype=torch.uint8))


def digest(images: torch.Tensor) -> str:
    return hashlib.sha256(images.cpu().numpy().tobytes()).hexdigest()


def test_the_first_hundred_are_pinned():
    assert digest(painted(torch.arange(100))) == FIRST_HUNDRED


def test_batch_and_order_do_not_matter():
    whole = painted(torch.arange(60))
    assert torch.equal(torch.cat([painted(part) for part in torch.arange(60).split(7)]), whole)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(0))
    assert torch.equal(painted(order), whole[order])
    assert not torch.equal(painted(torch.arange(60), seed=1), whole)
    assert len({digest(picture) for picture in whole}) == 60


def crops(scene: int) -> Iterator[tuple[np.ndarray, np.ndarray, int, int]]:
    """Ink (side,side), colour (3,), left and top of each crop, drawn with plain Python integers."""
    glyphs = glyphs_for("train", "pack")
    for k in range(17):
        state = hash_state(0, torch.tensor(scene))
        (glyph, offset), (colour, noise), (scale, place) = (
            [int(word) for word in hash_words(state, 50 + stream, torch.tensor(k))] for stream in range(3)
        )
        side = (163840 + (scale * 819200 >> 32)) >> 16  # 2.5 + U · 12.5 px in 2⁻¹⁶ px
        left, rest = divmod(offset * 23, 1 << 32)
        top = rest * 23 >> 32
        x, rest = divmod(place * (101 - side), 1 << 32)
        y = rest * (101 - side) >> 32
        crop = glyphs.images[glyph * len(glyphs) >> 32][top : top + 5, left : left + 5]
        ink = resized(crop[None], torch.tensor([side]), side)[0].byte().numpy()
        tint = rgb(torch.tensor(colour * 5 >> 32), rounded_normal(torch.tensor(noise), 10.0)).numpy()
        yield ink, tint, x, y


def test_crops_worked_out_one_by_one():
    """Crop by crop on the host with plain Python integers, bytes added with a stop at 255."""
    for scene in (0, 3, 77):
        expected = np.zeros((3, 100, 100), dtype=np.int64)
        for ink, tint, x, y in crops(scene):
            side = len(ink)
            expected[:, y : y + side, x : x + side] += (2 * tint[:, None, None] * ink.astype(int) + 255) // 510
        found = painted(torch.tensor([scene]))[0].numpy()
        assert np.array_equal(found, expected.clip(max=255))


def test_the_authors_crops_are_cut_to_bytes_and_wrap_around():
    """The sums of the released generator, with NumPy's bytes; of 400 scenes those in which the most light meets."""
    numbers = torch.arange(400)
    blended, theirs = painted(numbers), painted(numbers, drawing="authors")
    darker = (blended.int() - theirs.int()).amax((1, 2, 3))  # (B,) a sum that wraps loses most of its light
    for scene in darker.topk(3).indices.tolist():
        assert int(darker[scene]) > 100
        expected = np.zeros((100, 100, 3), np.uint8)
        for ink, tint, x, y in crops(scene):
            add(expected, ink, tint.tolist(), x, y)
        apart = expected.transpose(2, 0, 1).astype(int) - theirs[scene].numpy()
        assert np.abs((apart + 128) % 256 - 128).max() <= 2


def test_both_drawings_take_turns():
    numbers = torch.tensor([4, 7, 1, 2])
    blended, theirs, both = (painted(numbers, drawing=drawing) for drawing in ("blend", "authors", "both"))
    assert not torch.equal(blended[1], theirs[1])
    assert torch.equal(both, torch.stack([blended[0], theirs[1], theirs[2], blended[3]]))


def test_more_crops_never_darken_a_pixel_and_many_meet_the_ceiling():
    """The sum stops at 255; a sum that wrapped around would darken."""
    pictures = [painted(torch.arange(4), glyphs=WHITE, count=count).int() for count in (0, 17, 120, 400)]
    assert pictures[0].sum() == 0
    for fewer, more in pairwise(pictures):
        assert (more >= fewer).all()
        assert (more > fewer).any()
    assert (pictures[-1] == 255).float().mean() > 0.5


def test_one_white_crop_is_a_square_of_one_colour():
    """Sides are ⌊U(2.5, 15)⌋: 2 … 14 with mean 103/12.5 = 8.24; every place inside the picture may be taken."""
    pictures = painted(torch.arange(4000), glyphs=WHITE, count=1)
    lit = (pictures > 0).any(dim=1)  # (B, 100, 100)
    rows, columns = lit.any(dim=2), lit.any(dim=1)
    side = rows.sum(dim=1)
    assert torch.equal(side, columns.sum(dim=1))
    assert torch.equal(lit.flatten(1).sum(dim=1), side * side)
    assert set(side.tolist()) == set(range(2, 15))
    assert abs(side.double().mean() - 8.24) < 0.2
    assert rows.any(dim=0).all()
    assert columns.any(dim=0).all()
    x, y = columns.int().argmax(dim=1), rows.int().argmax(dim=1)
    assert abs(torch.corrcoef(torch.stack([x, y]).double())[0, 1]) < 0.06
    assert (x + side == 100).any()
    tint = pictures[torch.arange(4000), :, y, x].int()  # (B, 3)
    reference = rgb(torch.arange(5), torch.zeros(5, dtype=torch.int64))
    nearest = (tint[:, None] - reference).abs().sum(dim=-1).argmin(dim=1)
    shares = torch.bincount(nearest, minlength=len(COLOURS)) / 4000
    assert (shares - 0.2).abs().max() < 0.03


@pytest.mark.parametrize(("line", "seen"), [(26, True), (27, False)])
def test_crops_begin_below_23_as_in_the_authors_code(line, seen):
    image = torch.zeros(28, 28, dtype=torch.uint8)
    image[line] = image[:, line] = 255
    assert bool(painted(torch.arange(50), glyphs=uniform_glyphs(image)).any()) is seen


def test_crops_come_from_the_glyphs_given_and_from_all_of_them():
    dark = uniform_glyphs(torch.zeros(28, 28, dtype=torch.uint8))
    assert not painted(torch.arange(20), glyphs=dark).any()
    for lit in range(10):
        images = dark.images.clone()
        images[lit] = 255
        assert painted(torch.arange(20), glyphs=GlyphSet(images, dark.labels, "one lit")).any()


def test_other_sizes_and_no_scene_at_all():
    assert MDIST(WHITE, 0, torch.arange(3), 64).shape == (3, 3, 64, 64)
    assert painted(torch.arange(0)).shape == (0, 3, 100, 100)
    assert MDIST.name == "distractors-17"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu_paints_the_same_bytes():
    images = painted(torch.arange(100, device="cuda"), glyphs=glyphs_for("train", "pack").to("cuda"))
    assert digest(images) == FIRST_HUNDRED
