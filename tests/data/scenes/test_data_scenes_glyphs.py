"""Glyphs: idx files in every spelling, the shipped pack, splits kept apart, and the authors' drawing by Pillow."""

import gzip
import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

import saccade.data.scenes.glyphs as pack_module
from authors_paste import drawn
from saccade.data.scenes import kernels
from saccade.data.scenes.drawing import Drawing, render, resized
from saccade.data.scenes.glyphs import GlyphSet, glyphs_for, has_mnist, load_mnist, load_pack
from saccade.data.scenes.layout import SceneLayout
from saccade.data.scenes.sampler import sample_layout
from saccade.errors import DataError
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.files import RemoteFile


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
