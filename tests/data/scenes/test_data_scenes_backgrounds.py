"""Photographs behind scenes, and glyphs: what is read, split apart, pinned, cut and drawn as the authors do."""

import gzip
import hashlib
import json
import struct
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from PIL import Image

import saccade.data.scenes.glyphs as pack_module
from authors_paste import add, drawn
from saccade.data.scenes import kernels
from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.drawing import Drawing, render, resized, rgb
from saccade.data.scenes.glyphs import GlyphSet, glyphs_for, has_mnist, load_mnist, load_pack
from saccade.data.scenes.hashing import hash_state, hash_words, rounded_normal
from saccade.data.scenes.layout import SceneLayout
from saccade.data.scenes.photo_backgrounds import SHIPPED, Photographs, photographs_for
from saccade.data.scenes.sampler import sample_layout
from saccade.errors import DataError
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.files import RemoteFile

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


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def tiny_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """5,030 train and 20 test glyphs, taken for MNIST; the pixel at (0, 0) and (0, 1) number the glyph."""
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path))
    folder, known = tmp_path / "mnist", []
    folder.mkdir()
    for stem, count in (("train", 5_030), ("t10k", 20)):
        images = np.zeros((count, 28, 28), np.uint8)
        images[:, 0, 0], images[:, 0, 1] = np.arange(count) // 256, np.arange(count) % 256
        images[:, 0, 2] = stem == "t10k"
        pictures, labels = idx(images), idx((np.arange(count) % 10).astype(np.uint8))
        (folder / f"{stem}-images-idx3-ubyte").write_bytes(pictures)
        (folder / f"{stem}-labels.idx1-ubyte.gz").write_bytes(gzip.compress(labels))
        known += [RemoteFile(stem, len(data), hashlib.sha256(data).hexdigest()) for data in (pictures, labels)]
    monkeypatch.setitem(pack_module.FILES, "mnist", tuple(known))
    return folder


def contents(glyphs: GlyphSet) -> set[bytes]:
    return {image.numpy().tobytes() for image in glyphs.images}


def test_files_are_found_in_either_spelling_gzipped_or_not(tiny_mnist):
    assert has_mnist()
    train = load_mnist("train")
    assert train.name == "mnist-train-5030"
    assert train.images[4_000, 0, :2].tolist() == [15, 160]
    assert train.labels[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


@pytest.mark.parametrize("content", [gzip.compress(bytes(1000))[:-12], gzip.compress(bytes(9))], ids=["cut", "other"])
def test_a_file_that_was_replaced_or_damaged_is_refused(tiny_mnist, content):
    (tiny_mnist / "train-labels.idx1-ubyte.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"train-labels"):
        load_mnist("train")


def test_disjoint_splits_share_no_glyph(tiny_mnist):
    train, val, test = (glyphs_for(split, "disjoint") for split in ("train", "val", "test"))
    assert (len(train), len(val), len(test)) == (30, 5_000, 20)
    assert val.images[0, 0, :2].tolist() == [0, 30]
    assert not contents(train) & contents(val)
    assert not contents(test) & (contents(train) | contents(val))
    assert (train.name, val.name, test.name) == ("mnist-train-30", "mnist-val-5000", "mnist-test-20")


def test_pack_splits_are_balanced_and_disjoint():
    shares = {split: glyphs_for(split, "pack") for split in ("train", "val", "test")}
    assert {split: len(share) for split, share in shares.items()} == {"train": 1200, "val": 200, "test": 600}
    for share in shares.values():
        assert len(set(torch.bincount(share.labels).tolist())) == 1
    everything = [contents(share) for share in shares.values()]
    assert sum(map(len, everything)) == len(set.union(*everything)) == 2000


def test_the_pack_is_of_the_test_part_of_mnist():
    facts = json.loads((pack_module.FOLDER / "mnist-test-pack-2000.json").read_text())
    assert hashlib.sha256(load_pack().images.numpy().tobytes()).hexdigest() == facts["pixels_sha256"]
    # MNIST's test part famously opens 7 2 1 0 4 1 4 9 5 9.
    first_ten = {index: label for index, label in zip(facts["source_indices"], facts["labels"]) if index < 10}
    assert [first_ten[i] for i in range(10)] == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def resized_here(glyph: np.ndarray, side: int) -> np.ndarray:
    """A glyph as saccade resizes it: Pillow's differs by up to 2 of 255, which counts twice where ink does."""
    return resized(torch.from_numpy(glyph)[None], torch.tensor([side]), side)[0].byte().numpy()


def authors_scenes(name: str, drawing: Drawing = "authors") -> SceneLayout:
    data = SceneData(SceneDataConfig(name, glyphs="pack", drawing=drawing), "test")
    return sample_layout(data.spec, data.glyphs, data.seed, torch.arange(24))


def by_pillow(layout: SceneLayout, **how: Any) -> np.ndarray:
    """(B,H,W,3) the scenes of a layout, pasted by Pillow onto saccade's backgrounds."""
    behind = layout.spec.background(layout.glyphs, layout.seed, layout.index, layout.spec.size)
    pictures = behind.permute(0, 2, 3, 1).contiguous().numpy()
    return np.stack([drawn(layout, scene, pictures[scene], **how) for scene in range(len(layout))])


def on_cuda(layout: SceneLayout) -> SceneLayout:
    """The same scenes on a GPU."""
    tensors = {name: column.cuda() for name, column in layout.tensors().items()}
    return replace(layout, glyphs=layout.glyphs.to("cuda"), **tensors)


def apart(layout: SceneLayout, expected: np.ndarray) -> np.ndarray:
    """How far the pictures of a layout are from others (B,H,W,3), in 255ths."""
    return np.abs(render(layout).cpu().permute(0, 2, 3, 1).numpy().astype(int) - expected)


@pytest.mark.parametrize("name", ["mref", "mdist", "mbg"])
def test_scenes_are_what_pillow_pastes(name: str) -> None:
    layout = authors_scenes(name)
    pasted_by_pillow = by_pillow(layout)
    assert apart(layout, by_pillow(layout, resize=resized_here)).max() <= 1
    found = apart(layout, pasted_by_pillow)
    assert (found > 2).mean() < 1e-4
    assert found.max() <= 3  # where Pillow's bilinear filter is off by 2, and the ink is nearly full


def test_the_makers_on_the_host_are_bit_equal() -> None:
    """NumPy; and torch, which is left the objects that may lie over each other."""
    for name in ("mref", "mdist", "mbg"):
        for drawing in get_args(Drawing):
            layout = authors_scenes(name, drawing)
            assert torch.equal(render(replace(layout, may_overlap=True)), render(layout)), (name, drawing)


def test_both_draws_every_other_scene_as_the_authors_do_and_mostly_three_of_four() -> None:
    blend, authors, both, mostly = (render(authors_scenes("mdist", drawing)) for drawing in get_args(Drawing))
    assert torch.equal(both[::2], blend[::2])
    assert torch.equal(both[1::2], authors[1::2])
    assert torch.equal(mostly[::4], blend[::4])
    for later in (1, 2, 3):
        assert torch.equal(mostly[later::4], authors[later::4])
    assert not torch.equal(blend[0], authors[0])


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("drawing", get_args(Drawing))
@pytest.mark.parametrize("name", ["mref", "mdist", "mbg"])
def test_gpu_draws_the_bytes_of_the_cpu(name: str, drawing: Drawing, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernels, and by torch's own operations."""
    here = authors_scenes(name, drawing)
    assert kernels.why_no_kernels(torch.device("cuda")) == ""
    assert torch.equal(render(on_cuda(here)).cpu(), render(here))
    monkeypatch.setattr(kernels, "_failure", "left out by the test")
    assert torch.equal(render(on_cuda(here)).cpu(), render(here))
