"""MDIST and MBG: crops of the split's own glyphs, added by whole numbers; and the digits of MREF before them."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from authors_paste import add
from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.drawing import resized, rgb
from saccade.data.scenes.glyphs import GlyphSet, glyphs_for
from saccade.data.scenes.hashing import hash_state, hash_words, rounded_normal
from saccade.data.scenes.photographs import SHIPPED
from saccade.families.question.scenes import SceneData, SceneDataConfig

MDIST = Distractors()


def painted(numbers: torch.Tensor, *, seed: int = 0, glyphs: GlyphSet | None = None, **settings) -> torch.Tensor:
    return Distractors(**settings)(glyphs or glyphs_for("train", "pack"), seed, numbers, 100)


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


@pytest.mark.parametrize("name", ["mdist", "mbg"])
def test_questions_answers_and_evidence_are_those_of_mref(name):
    plain, batch = (
        SceneData(SceneDataConfig(name=which, glyphs="pack", backgrounds=str(SHIPPED)), "train").take(torch.arange(64))
        for which in ("mref", name)
    )
    for column in ("index", "classes", "glyph", "colour", "noise", "extent", "x", "y", "present"):
        assert torch.equal(getattr(batch.layout, column), getattr(plain.layout, column)), column
    for column in ("query", "label", "object"):
        assert torch.equal(getattr(batch, column), getattr(plain, column))
    assert torch.equal(batch.evidence(), plain.evidence())
    assert torch.equal(batch.layout.all_objects(), plain.layout.all_objects())
