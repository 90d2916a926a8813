"""Does attention over sentences lie on the supporting facts, those that the answer needs?

=================  ==========================================================================================
``support_hit``    1 where the heaviest sentence is a supporting fact
``support_rank``   mean over the supporting facts of 1 / rank. A fact's rank is 1 + the sentences that are heavier
                   and no supporting facts, so a map that puts all supporting facts first scores 1
``support_mass``   the share of the weight on sentences that lies on supporting facts
``support_found``  the share of the supporting facts that are the heaviest sentence of at least one look
``mass_elsewhere`` the share of all weight that lies on no sentence: on empty slots, or on an end marker
=================  ==========================================================================================

Sentences of equal weight share what they would get: a constant map hits as often as a sentence drawn at random. A
question without a supporting fact in memory has no score (NaN), nor has a map without weight on a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.metrics.slots.values import check_slots, check_weights, shares, where_any


def support_hit(weights: Tensor, supporting: Tensor, present: Tensor) -> Tensor:
    """Whether the heaviest sentence is a supporting fact (B,); of several heaviest, the share that are.

    Args:
        weights: (B,S).
        supporting: (B,S) bool, slots of supporting facts.
        present: (B,S) bool, slots that hold a sentence.
    """
    weights, supporting, present = _checked(weights, supporting, present)
    heaviest = _heaviest(weights, present)  # (B,S)
    share = (heaviest & supporting).sum(1) / heaviest.sum(1).clamp(min=1)
    return where_any(share.double(), _is_defined(weights, supporting, present))


def support_rank(weights: Tensor, supporting: Tensor, present: Tensor) -> Tensor:
    """Mean reciprocal rank of the supporting facts (B,), as the module says; equal weights share their ranks."""
    weights, supporting, present = _checked(weights, supporting, present)
    count = supporting.sum(1)  # (B,)
    most = max(1, int(count.max())) if len(count) else 1  # F
    places = supporting.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # (B,F): the facts first
    is_fact = torch.arange(most, device=count.device) < count.unsqueeze(1)  # (B,F)
    others = (present & ~supporting).unsqueeze(1)  # (B,1,S)
    mine, theirs = weights.gather(1, places).unsqueeze(2), weights.unsqueeze(1)  # (B,F,1), (B,1,S)
    before = ((theirs > mine) & others).sum(2).double() + 0.5 * ((theirs == mine) & others).sum(2)  # (B,F)
    total = ((1 / (1 + before)) * is_fact).sum(1) / count.clamp(min=1)
    return where_any(total, _is_defined(weights, supporting, present))


def support_mass(weights: Tensor, supporting: Tensor, present: Tensor) -> Tensor:
    """The share of the weight on sentences that lies on supporting facts (B,); NaN where there is no weight."""
    weights, supporting, present = _checked(weights, supporting, present)
    on = shares(weights, present).masked_fill(~supporting, 0.0).sum(1)
    return where_any(on, _is_defined(weights, supporting, present))


def support_found(looks: Sequence[Tensor], supporting: Tensor, present: Tensor) -> Tensor:
    """The share of the supporting facts that are the heaviest sentence of at least one of the looks (B,).

    A look without any weight on sentences finds nothing. A look with several heaviest sentences finds one of them,
    drawn at random and apart from the other looks: a fact counts as much as it is likely to be found.
    """
    missed = torch.ones(supporting.shape, dtype=torch.double, device=supporting.device)  # (B,S): no look finds it
    for each in looks:
        weights, supporting, present = _checked(each, supporting, present)
        heaviest = _heaviest(weights, present) & ((weights * present).sum(1, keepdim=True) > 0)  # (B,S)
        missed = missed * (1 - heaviest.double() / heaviest.sum(1, keepdim=True).clamp(min=1))
    total = ((1 - missed) * supporting).sum(1) / supporting.sum(1).clamp(min=1)
    return where_any(total, supporting.any(1))


def mass_elsewhere(weights: Tensor, present: Tensor) -> Tensor:
    """The share of all weight that lies on slots without a sentence (B,); NaN where there is no weight."""
    weights = check_weights(weights)
    present = check_slots(present, weights, "present")
    total = weights.sum(1)
    return where_any((weights * ~present).sum(1) / total.clamp(min=1e-300), total > 0)


def _checked(weights: Tensor, supporting: Tensor, present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    weights = check_weights(weights)
    present = check_slots(present, weights, "present")
    return weights, check_slots(supporting, weights, "supporting") & present, present


def _is_defined(weights: Tensor, supporting: Tensor, present: Tensor) -> Tensor:
    """Whether there is a supporting fact in memory, and any weight on a sentence (B,)."""
    return supporting.any(1) & ((weights * present).sum(1) > 0)


def _heaviest(weights: Tensor, present: Tensor) -> Tensor:
    """The slots (B,S) with the largest weight among those present."""
    held = torch.where(present, weights, -1.0)
    return (held == held.max(1, keepdim=True).values) & present
