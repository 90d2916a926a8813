"""How attention over sentences changes when the story is changed.

``kept`` (B,S) says which slot of the first story each slot of the second one comes from, −1 where it is new or empty.
So sentences can be removed, replaced or left in place.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.errors import ShapeError
from saccade.metrics.slots.values import check_slots, check_weights, shares


def weights_hold(before: Tensor, after: Tensor, kept: Tensor) -> Tensor:
    """1 − total variation between two maps over the sentences that both stories have (B,): 1 is no change.

    Both maps are taken as shares of their weight on these sentences. NaN where one of them has none there.

    Args:
        before: weights (B,S) of the first story.
        after: weights (B,S) of the second.
        kept: (B,S), see the module.
    """
    before, after, both = _aligned(before, after, kept)
    first, second = shares(before, both), shares(after, both)
    return 1 - 0.5 * (first - second).abs().sum(1)


def moved_to(before: Tensor, after: Tensor, kept: Tensor, where: Tensor) -> Tensor:
    """The share of the weight that was gained which lies on the sentences ``where`` (B,).

    Weight was gained on slots of the second story that have more of it than their sentence had in the first. What is
    new there counts as having had none. Where nothing was gained it is 0: weights that stay do not follow.

    Args:
        before: weights (B,S) of the first story; not turned into shares.
        after: weights (B,S) of the second.
        kept: (B,S), see the module.
        where: (B,S) bool, slots of the second story.
    """
    had, after, _ = _aligned(before, after, kept)
    gained = (after - had).clamp(min=0)  # (B,S)
    total = gained.sum(1)
    on = (gained * check_slots(where, after, "where")).sum(1)
    return torch.where(total > 1e-9, on / total.clamp(min=1e-300), 0.0)


def _aligned(before: Tensor, after: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The weights that the sentences of the second story had and have (B,S), and which of them were in the first."""
    before, after = check_weights(before, "before"), check_weights(after, "after")
    if kept.shape != after.shape:
        raise ShapeError("kept", f"{tuple(after.shape)} as the weights after", kept.shape)
    both = kept >= 0
    had = before.gather(1, kept.clamp(min=0)) * both
    return had, after, both
