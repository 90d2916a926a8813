"""Scores of attention over the slots of a memory, such as the sentences of a story.

Axes: B questions, S slots, T looks. Weights are (B,S), finite and ≥ 0. ``present`` (B,S) bool says which slots hold
something; scores are about these alone. A score is (B,), NaN where a question has none: without a supporting fact in
memory, or without weight on a sentence. Equal weights share what they would get.

=================  ==========================================================================================
``support_hit``    1 where the heaviest sentence is a supporting fact, one that the answer needs
``support_rank``   mean over the supporting facts of 1 / rank. A fact's rank is 1 + the sentences that are heavier
                   and no supporting facts, so a map that puts all supporting facts first scores 1
``support_mass``   the share of the weight on sentences that lies on supporting facts
``support_found``  the share of the supporting facts that are the heaviest sentence of at least one look
``mass_elsewhere`` the share of all weight that lies on no sentence: on empty slots, or on an end marker
=================  ==========================================================================================

When a story is changed, ``source`` (B,S) says which slot of the first story each slot of the second one comes from, −1
if it is new or empty. Maps over sentences that need no model serve as baselines; each sums to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.metrics.maps.localisation import where_defined


def _wide(weights: Tensor) -> Tensor:
    return weights.detach().double()


def shares(weights: Tensor, present: Tensor) -> Tensor:
    """Weights (B,S) as shares of what lies on present slots; NaN in a row without any."""
    on_present = weights * present
    total = on_present.sum(1, keepdim=True)
    return torch.where(total > 0, on_present / total.clamp(min=1e-300), torch.nan)


def support_hit(weights: Tensor, supporting: Tensor, present: Tensor) -> Tensor:
    """Whether the heaviest sentence is a supporting fact (B,); of several heaviest, the share.

    ``supporting`` (B,S) bool are the slots of supporting facts, ``present`` those with a sentence.
    """
    weights, supporting = _wide(weights), supporting & present
    heaviest = _heaviest(weights, present)  # (B,S)
    share = (heaviest & supporting).sum(1) / heaviest.sum(1).clamp(min=1)
    return where_defined(share.double(), _is_defined(weights, supporting, present))


def support_rank(weights: Tensor, supporting: Tensor, present: Tensor) -> Tensor:
    """Mean reciprocal rank of the supporting facts (B,), as the module says; equal weights share their ranks."""
    weights, supporting = _wide(weights), supporting & present
    count = supporting.sum(1)  # (B,)
    most = max(1, int(count.max())) if len(count) else 1  # F
    places = supporting.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # (B,F): the facts first
    is_fact = torch.arange(most, device=count.device) < count.unsqueeze(1)  # (B,F)
    others = (present & ~supporting).unsqueeze(1)  # (B,1,S)
    mine, theirs = weights.gather(1, places).unsqueeze(2), weights.unsqueeze(1)  # (B,F,1), (B,1,S)
    before = ((theirs > mine) & others).sum(2).double() + 0.5 * ((theirs == mine) & others).sum(2)  # (B,F)
    total = ((1 / (1 + before)) * is_fact).sum(1) / count.clamp(min=1)
    return where_defined(total, _is_defined(weights, supporting, present))


def support_mass(weights: Tensor, supporting: Tensor, present: Tensor) -> Tensor:
    """The share of the weight on sentences that lies on supporting facts (B,); NaN without weight."""
    weights, supporting = _wide(weights), supporting & present
    on = shares(weights, present).masked_fill(~supporting, 0.0).sum(1)
    return where_defined(on, _is_defined(weights, supporting, present))


def support_found(looks: Sequence[Tensor], supporting: Tensor, present: Tensor) -> Tensor:
    """The share of the supporting facts that are the heaviest sentence of at least one look (B,).

    Of several heaviest sentences each counts by its probability.
    """
    missed = torch.ones(supporting.shape, dtype=torch.double, device=supporting.device)  # (B,S): no look finds it
    for look in looks:
        weights, supporting = _wide(look), supporting & present
        heaviest = _heaviest(weights, present) & ((weights * present).sum(1, keepdim=True) > 0)  # (B,S)
        missed = missed * (1 - heaviest.double() / heaviest.sum(1, keepdim=True).clamp(min=1))
    total = ((1 - missed) * supporting).sum(1) / supporting.sum(1).clamp(min=1)
    return where_defined(total, supporting.any(1))


def mass_elsewhere(weights: Tensor, present: Tensor) -> Tensor:
    """The share of all weight on slots without a sentence (B,); NaN without weight."""
    weights = _wide(weights)
    total = weights.sum(1)
    return where_defined((weights * ~present).sum(1) / total.clamp(min=1e-300), total > 0)


def _is_defined(weights: Tensor, supporting: Tensor, present: Tensor) -> Tensor:
    """Whether there is a supporting fact in memory, and any weight on a sentence (B,)."""
    return supporting.any(1) & ((weights * present).sum(1) > 0)


def _heaviest(weights: Tensor, present: Tensor) -> Tensor:
    masked = torch.where(present, weights, -1.0)
    return (masked == masked.max(1, keepdim=True).values) & present


def weights_hold(before: Tensor, after: Tensor, source: Tensor) -> Tensor:
    """1 − total variation between weights (B,S) over the sentences of both stories (B,): 1 is no change.

    Weights are shares over these sentences; NaN if a story has none there.
    """
    before, after, both = _aligned(before, after, source)
    first, second = shares(before, both), shares(after, both)
    return 1 - 0.5 * (first - second).abs().sum(1)


def moved_to(before: Tensor, after: Tensor, source: Tensor, where: Tensor) -> Tensor:
    """The share of the gained weight that lies on the sentences ``where`` (B,).

    A slot of the second story gains what it has more than its sentence had in the first. Without any gain the result is
    0. ``where`` (B,S) bool are slots of the second story.
    """
    had, after, _ = _aligned(before, after, source)
    gained = (after - had).clamp(min=0)  # (B,S)
    total = gained.sum(1)
    on = (gained * where).sum(1)
    return torch.where(total > 1e-9, on / total.clamp(min=1e-300), 0.0)


def _aligned(before: Tensor, after: Tensor, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The weights before and after of the second story's sentences (B,S), and which of these the first story had."""
    before, after = _wide(before), _wide(after)
    both = source >= 0
    had = before.gather(1, source.clamp(min=0)) * both
    return had, after, both


def uniform(present: Tensor) -> Tensor:
    """The same weight on every sentence; ``present`` (B,S) bool are the slots with one."""
    return _even(present.double(), present)


def recency(present: Tensor) -> Tensor:
    """Half the weight on the last sentence, a quarter on the one before, and so on."""
    back = present.sum(1, keepdim=True) - 1 - torch.arange(present.shape[1], device=present.device)  # (B,S)
    return _even(torch.where(present, 0.5 ** back.clamp(min=0).double(), 0.0), present)


def word_overlap(story: Tensor, query: Tensor) -> Tensor:
    """Weight by the number of distinct words that a sentence (B,S,J) shares with the question (B,Q); ids, 0: none.

    If no sentence shares a word, all weigh the same.
    """
    present = (story != 0).any(-1)  # (B,S)
    is_there = (story.unsqueeze(2) == query[:, None, :, None]).any(-1)  # (B,S,Q): word q of the question is in s
    earlier = query.unsqueeze(1) == query.unsqueeze(2)  # (B,Q,Q)
    is_first = ~earlier.tril(-1).any(-1) & (query != 0)  # (B,Q): a word that is asked twice counts once
    return _even((is_there & is_first.unsqueeze(1)).sum(-1).double(), present)


def _even(weights: Tensor, present: Tensor) -> Tensor:
    return torch.where((weights.sum(1, keepdim=True) > 0), shares(weights, present), shares(present.double(), present))
