"""Held-out examples of a trained model, as its task hands them on: pictures, and the answer where there is one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class HeldOut(NamedTuple):
    """Some held-out examples."""

    images: Tensor
    """(B,3,H,W) float in 0..1."""
    query: Tensor | None = None
    """(B,) what is asked, where something is."""
    label: Tensor | None = None
    """(B,) the right answer, or (B,K) those that hold; None where the answer is not one label."""


def evenly_spaced(size: int, count: int) -> Tensor:
    """``count`` numbers, or as many as there are, evenly over 0 … size − 1.

    >>> evenly_spaced(10, 5).tolist(), evenly_spaced(3, 5).tolist()
    ([0, 2, 4, 6, 8], [0, 1, 2])
    """
    few = min(size, count)
    return torch.arange(few) * size // max(few, 1)
