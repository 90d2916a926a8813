"""Pictures that were saved again are found across splits, others are not, and each is decoded once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter

from saccade.data.pictures import near_copies as module
from saccade.data.pictures.near_copies import near_copies, with_near_copies


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))


def photograph(seed: int, size: tuple[int, int] = (160, 120)) -> Image.Image:
    """Smooth blobs of colour with fine grain: as hard to compress as a photograph, and no two alike."""
    numbers = np.random.default_rng(seed)
    blobs = Image.fromarray(numbers.integers(0, 256, (8, 10, 3), np.uint8)).resize(size, Image.Resampling.BICUBIC)
    grain = Image.fromarray(numbers.integers(0, 256, (size[1], size[0], 3), np.uint8))
    return Image.blend(blobs, grain, 0.1)


AGAIN = {
    "quality 90": lambda picture, path: picture.save(path.with_suffix(".jpg"), quality=90),
    "quality 30": lambda picture, path: picture.save(path.with_suffix(".jpg"), quality=30),
    "half the size": lambda picture, path: picture.resize((80, 60)).save(path.with_suffix(".png")),
    "twice the size": lambda picture, path: picture.resize((320, 240)).save(path.with_suffix(".jpg"), quality=75),
    "webp": lambda picture, path: picture.save(path.with_suffix(".webp"), quality=60),
    "blurred": lambda picture, path: picture.filter(ImageFilter.GaussianBlur(1)).save(path.with_suffix(".png")),
}


@pytest.mark.parametrize("how", AGAIN)
def test_a_picture_that_was_saved_again_is_found(tmp_path: Path, how: str) -> None:
    split_of: dict[Path, str] = {}
    for number in range(12):
        path = tmp_path / f"{number}.png"
        photograph(number).save(path)
        split_of[path] = "train" if number < 8 else "val"
    AGAIN[how](photograph(3), tmp_path / "copy")
    (copy,) = tmp_path.glob("copy.*")
    said = near_copies({**split_of, copy: "test"})
    assert said.startswith("1 picture looks like one in another split")
    assert said.endswith(f"(first {copy.name} (test) ≈ 3.png (train))")
    assert near_copies({**split_of, copy: "train"}) == ""  # within a split it does no harm
    assert near_copies(split_of) == ""


def test_different_pictures_are_kept_apart(tmp_path: Path) -> None:
    """Plain ones too, which a difference hash alone takes for one."""
    split_of = {}
    for number in range(200):
        path = tmp_path / f"photo{number}.png"
        photograph(number, (40, 30)).save(path)
        split_of[path] = ("train", "val", "test")[number % 3]
    for number, colour in enumerate(((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255))):
        path = tmp_path / f"plain{number}.png"
        Image.new("RGB", (40, 30), colour).save(path)
        split_of[path] = ("train", "val", "test")[number % 3]
    for number in range(6):  # one small mark on white, elsewhere on each
        page = Image.new("RGB", (64, 64), "white")
        page.paste((0, 0, 0), (8 * number, 8 * number, 8 * number + 8, 8 * number + 8))
        path = tmp_path / f"page{number}.png"
        page.save(path)
        split_of[path] = ("train", "val", "test")[number % 3]
    assert near_copies(split_of) == ""


def test_all_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    split_of = {}
    for number in range(4):
        photograph(number).save(tmp_path / f"{number}.png")
        photograph(number).save(tmp_path / f"{number}.jpg", quality=80)
        split_of |= {tmp_path / f"{number}.png": "train", tmp_path / f"{number}.jpg": "val" if number else "train"}
    assert near_copies(split_of).startswith("3 pictures look like one in another split")
    summary = with_near_copies("csv:t.csv: 8 pictures", split_of).splitlines()
    assert summary[0] == "csv:t.csv: 8 pictures"
    assert summary[1].startswith("doubtful: 3 pictures look like")
    assert summary[1].endswith("(first 1.jpg (val) ≈ 1.png (train))")


def test_copies_byte_for_byte_are_named_elsewhere(tmp_path: Path) -> None:
    for name in "ab":
        photograph(1).save(tmp_path / f"{name}.png")
    assert near_copies({tmp_path / "a.png": "train", tmp_path / "b.png": "test"}) == ""


def test_a_picture_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        photograph(number).save(tmp_path / f"{number}.png")
    split_of = {tmp_path / f"{number}.png": split for number, split in enumerate(("train", "val", "test"))}
    decoded, real, told = [], module.read_picture, []
    monkeypatch.setattr(module, "read_picture", lambda path: decoded.append(path.name) or real(path))
    for _ in range(2):
        assert near_copies(split_of, lambda *far: told.append(far)) == ""
    assert sorted(decoded) == ["0.png", "1.png", "2.png"]
    assert told == [("near-copies", number, 3) for number in (1, 2, 3)]
    (tmp_path / "0.png").rename(tmp_path / "moved.png")
    near_copies({tmp_path / "moved.png": "train", tmp_path / "1.png": "val"})
    assert len(decoded) == 3  # the content is known
    (tmp_path / "home" / "near-copies.index").write_bytes(b"damaged")
    near_copies(split_of | {tmp_path / "moved.png": "train"})
    assert len(decoded) == 6


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    photograph(1).save(tmp_path / "a.png")
    photograph(1).save(tmp_path / "b.jpg", quality=80)
    (tmp_path / "c.png").write_bytes(b"no picture")
    split_of = {tmp_path / "c.png": "train", tmp_path / "a.png": "train", tmp_path / "b.jpg": "val"}
    assert "first b.jpg (val) ≈ a.png (train)" in near_copies({**split_of, tmp_path / "gone.png": "test"})


@pytest.mark.parametrize("limit", ["MAX_PICTURES", "MAX_BYTES"])
def test_a_large_table_is_not_searched_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    for number in range(3):
        photograph(number).save(tmp_path / f"{number}.png")
    split_of = {tmp_path / f"{number}.png": "train" if number else "val" for number in range(3)}
    monkeypatch.setattr(module, limit, 2)
    monkeypatch.setattr(module, "read_picture", None)
    assert near_copies(split_of).startswith("near-copies across splits were not looked for: 3 pictures of 0 MB")
