"""Checks the numbers of requested examples; an error names a number that the split does not have."""

from __future__ import annotations

import torch
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


def as_rows(numbers: Tensor, device: torch.device) -> Tensor | slice:
    """``numbers`` (B,) as an index of what lies on ``device``; neighbours are a slice, which copies nothing."""
    first, count = int(numbers[0]), len(numbers)
    if torch.equal(numbers, torch.arange(first, first + count)):
        return slice(first, first + count)
    return to_device(numbers, device)


def to_device(numbers: Tensor, device: torch.device) -> Tensor:
    """``numbers`` on ``device``; the host goes on before a GPU gets round to taking them."""
    return numbers.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else numbers.to(device)
