"""Examples of a split are asked for by number; a number that it does not have is named."""

from __future__ import annotations

from torch import Tensor

from saccade.errors import DataError


def checked_numbers(indices: Tensor, count: int | None, split: str, what: str) -> Tensor:
    """``indices`` (B,) as whole numbers in main memory, each below ``count`` (None: without end), or a DataError."""
    indices = indices.long().cpu()
    if indices.ndim != 1 or not len(indices):
        raise DataError(f"{what} are asked for by a list of numbers, found shape {tuple(indices.shape)}")
    lowest, highest = int(indices.min()), int(indices.max())
    if lowest < 0 or (count is not None and highest >= count):
        upper = "" if count is None else f"{count - 1}"
        raise DataError(f"{split} {what} are numbered 0..{upper}, found {lowest}..{highest}")
    return indices
