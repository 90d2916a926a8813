"""The three splits of a data set: their names, and the split that a hash of a name chooses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Literal, get_args

from saccade.errors import DataError, nearest

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
    """A number in [0, 1) that depends on ``text`` alone: which split it falls into, or its place in a fixed shuffle."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6], "big") / (1 << 48)


def split_sizes(count: Callable[[str], int]) -> str:
    """How many rows each split has, by what ``count`` says of it.

    >>> split_sizes({"train": 1400, "val": 300, "test": 0}.get)
    'train 1,400, val 300, test 0'
    """
    return ", ".join(f"{split} {count(split):,}" for split in SPLITS)
