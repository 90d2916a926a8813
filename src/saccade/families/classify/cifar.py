"""CIFAR-10 (Krizhevsky 2009): 60,000 pictures of 32 × 32 in ten classes, read into bytes on the device.

Two forms of the same pixels are read, in the same order:

========= ==========================================================================================================
package    what ``saccade data get cifar10`` fetches: six PNGs of 1024 × 10,000, one row for each picture, and the
           labels as JSON lists
binary     the official "binary version": six files of 10,000 records of 3,073 bytes, the label and then the three
           colour planes. The official python version is pickle, which can run code; it is refused.
========= ==========================================================================================================

Every tenth of the 50,000 training pictures is val. With ``hold_out: false`` all 50,000 are trained on, as in published
tables, and val measures nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saccade.data.examples import Split, first_numbers, to_device
from saccade.data.pictures.labelled import LabelledBatch, label_examples
from saccade.data.pictures.reading import read_picture
from saccade.errors import DataError
from saccade.files import cache_home, parse_json, read_regular
from saccade.geometry import Size

NAME = "cifar10"  # Name of the data, download and cache folder
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDE = 32
PER_BATCH = 10_000  # Pictures per official batch
HELD_OUT = 10  # One of so many training pictures is val
_PIXELS = SIDE * SIDE
_RECORD = 1 + 3 * _PIXELS
_BATCHES = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}
_LABELS = {"train": "train_lables.json", "test": "test_lables.json"}  # spelt so in the package
_MAX_LABELS = 1 << 20
_BINARY_FOLDER = "cifar-10-batches-bin"
LEARNS_VAL = f"{NAME}: val is a part of the 50,000 pictures that are learned from; choose nothing by its scores"


class CifarPictures:
    """One split of ``cifar10`` (cached) or ``cifar10:FOLDER``; ``hold_out`` leaves val out of train."""

    answers: tuple[str, ...] = CLASSES

    def __init__(self, name: str, split: Split, size: Size, device: torch.device, *, hold_out: bool) -> None:
        if tuple(size) != (SIDE, SIDE):
            raise DataError(f"{name}: pictures are {SIDE} × {SIDE}, found size {size[0]} × {size[1]}; leave size out")
        self.split, self.device = split, device
        self._note = LEARNS_VAL if split == "val" and not hold_out else ""
        images, labels = read_part(name, "test" if split == "test" else "train")
        members = _members(len(labels), split, hold_out=hold_out)
        self._images, self._labels = images[members].to(device), labels[members].to(device)

    @property
    def size(self) -> int:
        """Number of pictures."""
        return len(self._labels)

    def take(self, indices: Tensor) -> LabelledBatch:
        """The pictures ``indices`` (B,) as bytes."""
        numbers = to_device(indices, self.device)
        return LabelledBatch(self._images[numbers], self._labels[numbers])

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of the first ``limit`` pictures; None or 0: of all."""
        return first_numbers(self.size, limit, self.split)

    def described(self) -> dict[str, object]:
        """Its name, and a note if val is learned from."""
        return {"data": NAME, **({"note": self._note} if self._note else {})}

    shown = label_examples


def _members(count: int, split: Split, *, hold_out: bool) -> Tensor:
    numbers = torch.arange(count)
    if split == "test" or (split == "train" and not hold_out):
        return numbers
    is_val = numbers % HELD_OUT == HELD_OUT - 1
    return numbers[is_val if split == "val" else ~is_val]


def part_digest(name: str, part: str) -> str:
    """A digest of the pixels and labels of a part, the same for both forms."""
    digest = hashlib.blake2b(digest_size=8)
    for tensor in read_part(name, part):
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def read_part(name: str, part: str) -> tuple[Tensor, Tensor]:
    """The pictures (N,3,32,32) uint8 and labels (N,) of ``train`` or ``test``, in the official order."""
    path = name.partition(":")[2]
    folder = Path(path).expanduser() if path else cache_home() / NAME
    files = tuple(_files(folder, part, is_cached=not path))
    changed = tuple((file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    return _read(files, changed)


def _files(folder: Path, part: str, *, is_cached: bool) -> Iterator[Path]:
    for place in (folder, folder / _BINARY_FOLDER):
        for suffix, more in ((".png", (_LABELS[part],)), (".bin", ())):
            names = (*(f"{batch}{suffix}" for batch in _BATCHES[part]), *more)
            if all((place / name).is_file() for name in names):
                yield from (place / name for name in names)
                return
    if any((place / "data_batch_1").exists() for place in (folder, folder / "cifar-10-batches-py")):
        why = "the python version is pickle and is not opened, as it can run code"
        raise DataError(f"{folder}: {why}; get the binary version, cifar-10-binary.tar.gz")
    wanted = ", ".join(f"{batch}.bin" for batch in _BATCHES[part])
    get = f"run 'saccade data get {NAME}'" if is_cached else "unpack the binary version there"
    raise DataError(f"{folder}: CIFAR-10 is not there (looked for {wanted}, or the PNGs of the package); {get}")


@lru_cache(maxsize=2)
def _read(files: tuple[Path, ...], changed: tuple[tuple[int, int], ...]) -> tuple[Tensor, Tensor]:
    """Pixels and labels of ``files``, cached by their size and time (``changed``)."""
    last = files[-1]
    if last.suffix == ".bin":
        records = torch.cat([_records(file) for file in files])  # (N,3073)
        images, labels = records[:, 1:].reshape(-1, 3, SIDE, SIDE), records[:, 0].long()
    else:
        images = torch.cat([_rows_of_pixels(file) for file in files[:-1]])
        try:
            labels = torch.tensor(parse_json(read_regular(last, _MAX_LABELS)))
        except (ValueError, TypeError, RuntimeError) as error:
            raise DataError(f"{last}: not a JSON list of labels ({error}); get it again") from error
    is_list = labels.shape == (len(images),) and labels.dtype == torch.int64
    if not is_list or bool(((labels < 0) | (labels >= len(CLASSES))).any()):
        most = len(CLASSES) - 1
        raise DataError(f"{last.parent}: expected {len(images):,} labels of 0 to {most}; damaged: get it again")
    return images, labels


def _records(file: Path) -> Tensor:
    content = read_regular(file, 2 * PER_BATCH * _RECORD)
    if len(content) != PER_BATCH * _RECORD:
        raise DataError(f"{file}: {len(content):,} bytes, and a batch has {PER_BATCH * _RECORD:,}; get it again")
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).reshape(PER_BATCH, _RECORD).copy())


def _rows_of_pixels(file: Path) -> Tensor:
    """A PNG with a picture in each row of 1,024 pixels: (N,3,32,32)."""
    image = read_picture(file).image
    if image.size != (_PIXELS, PER_BATCH):
        size = f"{image.size[0]:,} × {image.size[1]:,}"
        raise DataError(f"{file}: {size} pixels, expected {_PIXELS:,} × {PER_BATCH:,}, one row a picture; get it again")
    rows = torch.from_numpy(np.array(image)).reshape(PER_BATCH, SIDE, SIDE, 3)  # (N,32,32,3)
    return rows.permute(0, 3, 1, 2).contiguous()
