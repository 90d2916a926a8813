"""Handwritten digits as material for scenes: where they come from, and which split may use which.

Policies:

=========== =====================================================================================================
disjoint     no glyph is in two splits: train = MNIST train without its last 5,000, val = those, test = MNIST test
merged       train and test together for every split, as in the authors' released code
pack         the 2,000 test glyphs that ship with saccade, cut 1,200 / 200 / 600; for trying things out offline
=========== =====================================================================================================
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saccade.data.examples import Split
from saccade.data.scenes.hashing import uniform_below
from saccade.errors import DataError
from saccade.files import FILES, cache_home

GlyphPolicy = Literal["disjoint", "merged", "pack"]

CLASSES = 10
_VALIDATION = 5_000
_PACK_SHARE = {"train": (0, 120), "val": (120, 140), "test": (140, 200)}  # of the 200 glyphs of each class
_MAX_IDX = 1 << 30


@dataclass(frozen=True, eq=False)
class GlyphSet:
    """Grey pictures of digits (n,28,28) uint8, ink bright on black, and labels (n,), with sorted access by class.

    ``name`` says the source, the share and the number; it goes into reports.
    """

    images: Tensor
    labels: Tensor
    name: str

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def _by_class(self) -> tuple[Tensor, Tensor, Tensor]:
        """Glyph ids sorted by class, and where each class starts and how many it has."""
        counts = torch.bincount(self.labels, minlength=CLASSES)
        return torch.argsort(self.labels, stable=True), torch.cumsum(counts, 0) - counts, counts

    def pick(self, classes: Tensor, bits: Tensor) -> Tensor:
        """A glyph id of each class (…), chosen by 32 random bits (…)."""
        ids, start, counts = self._by_class
        return ids[start[classes] + uniform_below(bits, counts[classes])]

    def to(self, device: torch.device | str) -> GlyphSet:
        """The same glyphs on another device."""
        images = self.images.to(device)
        return self if images is self.images else GlyphSet(images, self.labels.to(device), self.name)


def glyphs_for(split: Split, policy: GlyphPolicy, *, allow_pack: bool = False) -> GlyphSet:
    """The glyphs that ``split`` may use under ``policy``, see the module; a DataError where files are missing.

    Where MNIST is missing, ``allow_pack`` takes the shipped pack for the test split, and the name says so.
    """
    if policy == "pack":
        pack, (first, last) = load_pack(), _PACK_SHARE[split]  # the same share of every class
        ids = torch.cat([(pack.labels == label).nonzero().squeeze(1)[first:last] for label in range(CLASSES)])
        return GlyphSet(pack.images[ids], pack.labels[ids], f"pack-{split}-{len(ids)}")
    if policy == "merged":
        train, test = load_mnist("train"), load_mnist("test")
        return GlyphSet(
            torch.cat([train.images, test.images]), torch.cat([train.labels, test.labels]), "mnist-merged-70000"
        )
    if split == "test":
        if allow_pack and not has_mnist():
            return load_pack()
        return load_mnist("test")
    whole = load_mnist("train")
    edge = len(whole) - _VALIDATION
    share = slice(0, edge) if split == "train" else slice(edge, None)
    images, labels = whole.images[share], whole.labels[share]  # the same memory for all splits
    return GlyphSet(images, labels, f"mnist-{split}-{len(labels)}")


def meets_training_glyphs(trained: str, scored: str, split: str) -> bool:
    """Whether glyphs that a model was ``trained`` with are among those it is ``scored`` with, in spite of splits."""
    if trained == scored or scored not in get_args(GlyphPolicy):
        return False
    return trained == "merged" or (trained == "pack" and (scored == "merged" or split == "test"))


def pack_if_missing(settings: Mapping[str, object], split: str) -> tuple[dict[str, object], str]:
    """Settings of generated data, with shipped glyphs where ``split`` needs the missing MNIST; and a remark."""
    if split == "test" or settings.get("glyphs", "disjoint") == "pack" or has_mnist():
        return dict(settings), ""
    return {**settings, "glyphs": "pack"}, "made of shipped digits, as MNIST is not here"


def has_mnist() -> bool:
    """Whether all four idx files are there."""
    return len(_idx_files("train") + _idx_files("test")) == 4


def load_mnist(part: Literal["train", "test"]) -> GlyphSet:
    """All glyphs of MNIST's own train or test part, in their order."""
    paths = _idx_files(part)
    if len(paths) < 2:
        raise DataError(
            f"MNIST's {part} files are not in {cache_home() / 'mnist'}: run `saccade data get mnist`, or put the four "
            "idx files there (gzipped or not); without a download, glyphs='pack' uses the digits that ship with saccade"
        )
    images, labels = (_read_idx(path.resolve(), path.stat().st_mtime_ns) for path in paths)
    return GlyphSet(torch.from_numpy(images), torch.from_numpy(labels).long(), f"mnist-{part}-{len(labels)}")


@lru_cache(maxsize=4)
def _read_idx(path: Path, changed: int) -> np.ndarray:
    """The array in one of MNIST's idx files, gzipped or not; once for the splits of a run.

    The format: two zero bytes, the type, the number of axes, each axis as a big-endian 32-bit number, then the bytes.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(_MAX_IDX)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error}); fetch it again") from error
    if hashlib.sha256(content).hexdigest() not in {file.sha256 for file in FILES["mnist"]}:
        raise DataError(f"{path}: not MNIST's file, by its digest; delete it and run `saccade data get mnist`")
    header = 4 + 4 * content[3]
    return np.frombuffer(content, np.uint8, offset=header).reshape(np.frombuffer(content[4:header], ">u4")).copy()


def _idx_files(part: str) -> list[Path]:
    """The images and labels of a part that are there, in either spelling (-idx3 or .idx3), plain or gzipped."""
    stem, base, files = "train" if part == "train" else "t10k", cache_home() / "mnist", []
    for kind, axes in (("images", 3), ("labels", 1)):
        names = [f"{stem}-{kind}{dash}idx{axes}-ubyte{ending}" for dash in "-." for ending in ("", ".gz")]
        files += [base / name for name in names if (base / name).is_file()][:1]
    return files


PACK_NAME = "mnist-test-pack-2000"
FOLDER = Path(__file__).parent / "packs"
COLUMNS = 50  # Glyphs in a row of the sheet
SIDE = 28  # Pixels of a glyph, each way


@lru_cache
def load_pack() -> GlyphSet:
    """The shipped glyphs."""
    facts = json.loads((FOLDER / f"{PACK_NAME}.json").read_text(encoding="utf-8"))
    with Image.open(FOLDER / facts["sheet"], formats=("PNG",)) as sheet:
        pixels = np.array(sheet)
    rows = pixels.shape[0] // SIDE
    glyphs = pixels.reshape(rows, SIDE, COLUMNS, SIDE).swapaxes(1, 2).reshape(-1, SIDE, SIDE)
    return GlyphSet(torch.from_numpy(glyphs.copy()), torch.tensor(facts["labels"]), PACK_NAME)
