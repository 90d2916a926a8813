"""A loss that keeps the maps of different questions about one picture apart: the share that two maps have in common.

With the maps Aᵢ ≥ 0 of k questions about a picture, each divided by its sum, the loss is the mean over all pairs of

    o(a, b) = Σₓ min(a(x), b(x)) = 1 − TV(a, b)                                                                  (1)

and over all pictures. The loss does not say where to look, only that two questions must not share a place. The
gradient reaches the smaller of two weights on a cell, so a map gives up what another question holds more firmly.

Axes: S pictures, k questions about each, h and w cells or pixels.
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from saccade.errors import ConfigError, ShapeError

TINY = 1e-8
"""Added to the sums, so that a map of zeros has a finite loss."""


def overlap_loss(maps: Tensor, asks: int) -> Tensor:
    """Eq. (1), a scalar between 0 and 1.

    >>> maps = torch.tensor([[[1.0, 0.0]], [[1.0, 3.0]]])
    >>> round(float(overlap_loss(maps, asks=2)), 4)
    0.25

    Args:
        maps: (S·k,h,w) ≥ 0, normalised or not; k in a row belong to one picture.
        asks: k, at least 2.
    """
    if asks < 2:
        raise ConfigError(f"overlap_weight: maps of at least 2 questions about a picture are compared, found {asks}")
    if maps.dim() != 3 or len(maps) % asks:
        raise ShapeError("maps", f"(S·{asks},h,w)", maps.shape)
    shares = maps.float().flatten(1)  # (S·k,P)
    shares = (shares / (shares.sum(1, keepdim=True) + TINY)).view(-1, asks, shares.shape[1])  # (S,k,P)
    pairs = [torch.minimum(shares[:, one], shares[:, other]).sum(1) for one, other in combinations(range(asks), 2)]
    return torch.stack(pairs).mean()
