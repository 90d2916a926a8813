"""Backgrounds: crops of the split's own glyphs (MDIST), and cuts of photographs that no other split has (MBG)."""

import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from authors_paste import add
from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.drawing import resized, rgb
from saccade.data.scenes.glyphs import GlyphSet, glyphs_for
from saccade.data.scenes.hashing import hash_state, hash_words, rounded_normal
from saccade.data.scenes.photo_backgrounds import SHIPPED, Photographs, photographs_for
from saccade.errors import DataError
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


SPLITS = ("train", "val", "test")
FIRST_HUNDRED = "782c19b61c6e0d919c91743a55fd6c041745a67073870850af83ffb62102fbaf"
NOISE = [
    Image.fromarray(np.random.default_rng(k).integers(0, 256, shape, dtype=np.uint8))
    for k, shape in enumerate([(150, 200, 3), (321, 160, 3), (200, 900, 3), (90, 90, 3)])
]


def cuts(background: Photographs, numbers: torch.Tensor, seed: int = 0, size: int = 100) -> torch.Tensor:
    return background(glyphs_for("val", "pack"), seed, numbers, size)


def digest(images: torch.Tensor) -> str:
    return hashlib.sha256(images.cpu().contiguous().numpy().tobytes()).hexdigest()


def fill(folder: Path, names: list[str]) -> Path:
    """Pictures of one colour each, all different; the red channel tells them apart, up to 256 of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        level = len(list(folder.parent.rglob("*.png")))
        Image.new("RGB", (20, 12), (level, 0, 0)).save(folder / f"{name}.png")
    return folder


def shown(background: Photographs) -> set[int]:
    """The pictures (by their red) that scenes are made of."""
    return set(cuts(background, torch.arange(40 * background.count))[:, 0, 0, 0].tolist())


def test_the_first_hundred_cuts_are_pinned():
    assert digest(cuts(Photographs(NOISE, "noise"), torch.arange(100))) == FIRST_HUNDRED


def test_a_cut_is_a_piece_of_the_photograph_at_one_of_three_scales_perhaps_mirrored():
    """A picture that holds its own coordinates: red = column, green = row, blue = 77, at a short side of 150."""
    rows, columns = np.mgrid[:150, :200]
    picture = Image.fromarray(np.stack([columns, rows, np.full_like(rows, 77)], axis=-1).astype(np.uint8))
    made = cuts(Photographs([picture], "grid"), torch.arange(600)).int()
    assert (made[:, 2] == 77).all()
    across = made[:, 0, :, -1] - made[:, 0, :, 0]  # (B, rows)
    down = made[:, 1, -1] - made[:, 1, 0]
    mirrored = across[:, 50] < 0
    assert 0.4 < mirrored.float().mean() < 0.6
    assert (down[:, 50] > 0).all()  # never upside down
    spans = [99 * 150 / short for short in (110, 130, 150)]
    scale = (across[:, 50].abs()[:, None] - torch.tensor(spans)).abs()
    assert (scale.amin(dim=1) < 2.5).all()
    assert torch.bincount(scale.argmin(dim=1)).min() > 150
    full = scale.argmin(dim=1) == 2  # at this scale pixels are the photograph's own
    ramp = torch.arange(100)
    for cut, flipped in zip(made[full], mirrored[full]):
        straight = cut.flip(-1) if flipped else cut
        assert torch.equal(straight[0] - straight[0, 0, 0], ramp.expand(100, 100))
        assert torch.equal(straight[1] - straight[1, 0, 0], ramp[:, None].expand(100, 100))


@pytest.mark.parametrize(
    ("folders", "sizes"),
    [
        ({"": 40}, (32, 4, 4)),
        ({"train": 12, "val": 5, "test": 7}, (12, 5, 7)),
        ({"train": 20, "val": 6}, (18, 2, 6)),
        ({"train": 5, "test": 6}, (4, 1, 6)),
        ({"forest": 6, "street": 14}, (16, 2, 2)),
    ],
)
def test_splits_share_no_photograph_and_leave_none_out(tmp_path, folders, sizes):
    for folder, count in folders.items():
        fill(tmp_path / "set" / folder, [f"{folder}{k}" for k in range(count)])
    sets = [photographs_for(split, tmp_path / "set") for split in SPLITS]
    assert tuple(each.count for each in sets) == sizes
    seen = [shown(each) for each in sets]
    assert [len(each) for each in seen] == list(sizes)
    assert len(set.union(*seen)) == sum(folders.values())
    assert [each.name.rsplit("-", 2)[0] for each in sets] == [f"set-{split}" for split in SPLITS]


def test_what_cannot_be_read_is_named_counted_and_left_out(tmp_path):
    fill(tmp_path / "set" / "train", ["a", "b"])
    fill(tmp_path / "set" / "val", ["c"])
    fill(tmp_path / "set" / "test", ["d"])
    (tmp_path / "set" / "train" / "broken.jpg").write_bytes(b"no picture")
    (tmp_path / "set" / "train" / "notes.txt").write_text("not meant as one")
    with pytest.warns(UserWarning, match=r"left out 1 of 3 pictures for train.*broken\.jpg"):
        assert photographs_for("train", tmp_path / "set").count == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert photographs_for("val", tmp_path / "set").count == 1


def test_bad_folders_are_named(tmp_path):
    with pytest.raises(DataError, match="is not a folder; name one"):
        photographs_for("train", tmp_path / "nowhere")
    fill(tmp_path / "few", ["one", "two"])
    with pytest.raises(DataError, match=r"2 picture\(s\) cannot be shared among train, val, test"):
        photographs_for("train", tmp_path / "few")
    for path in (*(tmp_path / "few").iterdir(), tmp_path / "few" / "three.png"):
        path.write_bytes(b"GIF89a")
    with pytest.raises(DataError, match=r"none of the 1 pictures for train can be read \(.*\.png.*\); replace"):
        photographs_for("train", tmp_path / "few")
