"""A sample of a table's rows that does not depend on their order: pictures are taken by a hash of their name.

The first rows of a table are no sample: tables are often sorted, by label or by day. A hash of the picture's name is as
good as a random draw, is the same on every machine, and keeps the pictures it took when rows are added or moved. Rows
about one picture stay together. Pictures of equal names in different folders are told apart by their paths.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor


def sample_rows(images: Sequence[Path], limit: int | None) -> Tensor:
    """Numbers (N,) of at most ``limit`` rows, rising: all rows of one picture, then those of the next.

    Args:
        images: the picture of each row.
        limit: None or 0: all rows. Of the last picture some rows may be left out.
    """
    if not limit or limit >= len(images):
        return torch.arange(len(images))
    key = {image: _picture_key(image) for image in set(images)}
    order = sorted(range(len(images)), key=lambda row: (key[images[row]], row))
    return torch.tensor(sorted(order[:limit]), dtype=torch.int64)


def sample_pictures(images: Sequence[Path], words: Sequence[str], count: int) -> Tensor:
    """Numbers (N,) of at most ``count`` rows, rising: one of each picture, a second one only when no picture is left.

    Args:
        images: the picture of each row.
        words: what else tells the rows of a picture apart, such as the question; a hash chooses among them.
        count: rows at most.
    """
    key = {image: _picture_key(image) for image in set(images)}
    by_picture: dict[Path, list[int]] = {}
    for row in sorted(range(len(images)), key=lambda row: (_digest(f"{images[row].name}\n{words[row]}"), row)):
        by_picture.setdefault(images[row], []).append(row)
    turns = [(turn, key[image], row) for image, rows in by_picture.items() for turn, row in enumerate(rows)]
    return torch.tensor(sorted(row for *_, row in sorted(turns)[: max(0, count)]), dtype=torch.int64)


def _picture_key(image: Path) -> tuple[bytes, bytes]:
    return _digest(image.name), _digest(image.as_posix())


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
