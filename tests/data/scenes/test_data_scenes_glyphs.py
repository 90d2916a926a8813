"""Glyphs: idx files in every spelling, the shipped pack, and policies that keep splits apart."""

import gzip
import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

import saccade.data.scenes.glyphs as pack_module
from saccade.data.scenes.glyphs import GlyphSet, glyphs_for, has_mnist, load_mnist, load_pack
from saccade.errors import DataError
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
