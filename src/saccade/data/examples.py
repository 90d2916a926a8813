"""One example as a person sees it, for contact sheets and reports; the three splits; and samples of a table's rows.

Pictures of a sample are taken by a hash of their path from the folder of the table, so it depends neither on the order
of the rows nor on where the data lie, and keeps its pictures when rows are added. A smaller limit takes a part of what
a larger one takes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from saccade.errors import DataError, nearest


@dataclass(frozen=True, eq=False)
class Example:
    """One input and what is true of it."""

    source: Any  # What a predictor can look at: a picture (3,H,W) float in 0..1, or whatever the family reads
    truth: str
    masks: tuple[Tensor, ...] = ()  # Each (H,W) bool: where the truth can be seen; none if not known
    question: str | None = None

    @property
    def caption(self) -> str:
        """The question, if there is one, and the truth."""
        return self.truth if self.question is None else f"{self.question} → {self.truth}"


def seen_masks(masks: Tensor) -> tuple[Tensor, ...]:
    """Those of the masks (K,H,W) that show something, each (H,W)."""
    return tuple(mask for mask in masks.cpu() if mask.any())


Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

_SHARES: dict[Split, float] = {"train": 0.70, "val": 0.85, "test": 1.0}  # upper ends


def checked_split(name: str) -> Split:
    """``name``, if a split is called so; else a DataError with the nearest."""
    if name not in SPLITS:
        raise DataError(f"no split '{name}': {nearest(name, SPLITS)}")
    return name


def split_of(name: str) -> Split:
    """The split of ``name`` if none is given: 70 / 15 / 15 % of all names, by their hash."""
    share = hashed_share(name)
    return next(split for split, end in _SHARES.items() if share < end)


def hashed_share(text: str) -> float:
    """A number in [0, 1) that depends on ``text`` alone."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6], "big") / (1 << 48)


def split_sizes(count: Callable[[str], int]) -> str:
    """How many rows each split has, by what ``count`` says of it.

    >>> split_sizes({"train": 1400, "val": 300, "test": 0}.get)
    'train 1,400, val 300, test 0'
    """
    return ", ".join(f"{split} {count(split):,}" for split in SPLITS)


def table_folder(name: str) -> Path:
    """The folder from which pictures of the table ``name`` (READER:PATH) count."""
    path = Path(name.partition(":")[2])
    return path if path.is_dir() else path.parent


def sample_rows(images: Sequence[Path], folder: Path, limit: int | None, words: Sequence[str] = ()) -> Tensor:
    """Numbers (N,) of at most ``limit`` rows (None or 0: all), rising: all rows of one picture, then those of the next.

    ``words`` tell the rows of a picture in ``images`` apart, such as the question; empty where a picture has one row.
    """
    if not limit or limit >= len(images):
        return torch.arange(len(images))
    place = _places(images, folder)
    turn = [_digest(word) for word in words] or [b""] * len(images)
    order = sorted(range(len(images)), key=lambda row: (_digest(place[images[row]]), turn[row], row))
    return torch.tensor(sorted(order[:limit]), dtype=torch.int64)


def sample_pictures(images: Sequence[Path], folder: Path, words: Sequence[str], count: int) -> Tensor:
    """Numbers (N,) of at most ``count`` rows, rising: one of each picture, a second one only when no picture is left.

    Arguments as of :func:`sample_rows`.
    """
    place = _places(images, folder)
    by_picture: dict[Path, list[int]] = {}
    for row in sorted(range(len(images)), key=lambda row: (_digest(f"{place[images[row]]}\n{words[row]}"), row)):
        by_picture.setdefault(images[row], []).append(row)
    turns = [(turn, _digest(place[image]), row) for image, rows in by_picture.items() for turn, row in enumerate(rows)]
    return torch.tensor(sorted(row for *_, row in sorted(turns)[: max(0, count)]), dtype=torch.int64)


def first_numbers(size: int | None, limit: int | None, split: str) -> Tensor:
    """Numbers of the first ``limit`` examples of a generated split (None or 0: all)."""
    if size is None:
        raise DataError(f"split '{split}' has no end; score val or test")
    return torch.arange(min(limit or size, size))


def _places(images: Sequence[Path], folder: Path) -> dict[Path, str]:
    """The path of each picture from ``folder``, written alike on every system."""
    return {image: Path(os.path.relpath(image, folder)).as_posix() for image in set(images)}


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def as_rows(numbers: Tensor, device: torch.device) -> Tensor | slice:
    """``numbers`` (B,) as an index of what lies on ``device``; neighbours are a slice, which copies nothing."""
    first, count = int(numbers[0]), len(numbers)
    if torch.equal(numbers, torch.arange(first, first + count)):
        return slice(first, first + count)
    return to_device(numbers, device)


def to_device(numbers: Tensor, device: torch.device) -> Tensor:
    """``numbers`` on ``device``; the host goes on before a GPU gets round to taking them."""
    return numbers.cpu().pin_memory().to(device, non_blocking=True) if device.type == "cuda" else numbers.to(device)
