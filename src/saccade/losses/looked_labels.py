"""Rewards that tie what a reader of multisets says to where it looks, and the other way round; needs boxes.

Not in a paper. It changes the two rewards of Welleck et al. 2017 (arXiv:1711.05165), Section 4.2, by one number,
``elsewhere`` = e in −1 .. 1:

==========================================  =====================  =================
what is rewarded at meta step t             published              here
==========================================  =====================  =================
saying a free label that is looked at       +1                     +1
saying another free label                   +1                     e
saying anything else                        −1                     −1
a glimpse at a cell of the label's box      P_t at the cell        P_t at the cell
a glimpse at any other cell                 P_t at the cell        e · P_t
==========================================  =====================  =================

With e = 1 both are the published ones. A label is *looked at* if the step's last glimpse that lies on a free label lies
on it: the centre of the cell is inside its box, as in the score ``glimpse_on_label``. Where no glimpse of the step lies
on a free label, every free label counts as looked at.

The label of a glimpse is the one that was then said, which is no longer free afterwards; of two equal digits it is the
one looked at, else the first. Where nothing free was said, every free label is meant. If no label that is meant has a
box, every cell counts as inside.

Axes: B examples, T meta steps, k glimpses, M labels (padded with -1), Y classes with "stop", h and w cells.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import ShapeError


class LookedRewards(NamedTuple):
    """What the actions of a rollout are worth, given each other."""

    classes: Tensor
    """(B,T,Y): of every class that could have been said."""
    glimpses: Tensor
    """(B,T,h,w): factor of P_t at every cell that could have been glimpsed."""


class _Steps(NamedTuple):
    """Which labels (B,T,M), all bool, at each step."""

    free: Tensor
    looked: Tensor
    taken: Tensor


def looked_rewards(
    said: Tensor, location: Tensor, labels: Tensor, inside: Tensor, *, classes: int, elsewhere: float
) -> LookedRewards:
    """The rewards of a rollout, see the module.

    >>> said, location, labels = torch.tensor([[7]]), torch.tensor([[[0]]]), torch.tensor([[3, 7]])
    >>> inside = torch.tensor([[[[True, False]], [[False, True]]]])  # the 3 on the left cell, the 7 on the right one
    >>> found = looked_rewards(said, location, labels, inside, classes=9, elsewhere=0.5)
    >>> found.classes[0, 0, [3, 7, 8]].tolist(), found.glimpses[0, 0].tolist()
    ([1.0, 0.5, -1.0], [[0.5, 1.0]])

    Args:
        said: (B,T) classes.
        location: (B,T,k) glimpsed cells, numbered row by row.
        labels: (B,M), padded with -1.
        inside: (B,M,h,w) bool, which cells belong to the box of each label; none where there is no box.
        classes: Y.
        elsewhere: e, from −1 to 1.
    """
    _check(said, location, labels, inside)
    free, looked, taken = _follow(said, location, labels, inside)
    is_class = labels.unsqueeze(2) == torch.arange(classes, device=labels.device)  # (B,M,Y)
    can_say, can_name = (_any_label(each, is_class) for each in (free, looked))  # (B,T,Y) each
    worth = torch.where(can_name, 1.0, torch.where(can_say, elsewhere, -1.0))  # (B,T,Y)
    meant = torch.where(taken.any(2, keepdim=True), taken, free)  # (B,T,M)
    cells = _any_label(meant, inside.flatten(2))  # (B,T,N)
    cells = cells | ~cells.any(2, keepdim=True)  # (B,T,N)
    factor = torch.where(cells, 1.0, elsewhere).reshape(*said.shape, *inside.shape[2:])  # (B,T,h,w)
    return LookedRewards(worth, factor)


def _follow(said: Tensor, location: Tensor, labels: Tensor, inside: Tensor) -> _Steps:
    """Step by step: which labels are free, which of them are looked at, and which one is taken by being said."""
    many, glimpses = labels.shape[1], location.shape[2]
    left = labels >= 0  # (B,M)
    nowhere = ~inside.flatten(2).any(2)  # no cell belongs to them, so they cannot be looked at: (B,M)
    free, looked, taken = [], [], []
    for step in range(said.shape[1]):
        cells = location[:, step].unsqueeze(1).expand(-1, many, glimpses)  # (B,M,k)
        under = inside.flatten(2).gather(2, cells) & left.unsqueeze(2)  # (B,M,k)
        hits = under.any(1)  # (B,k)
        last = hits & (hits.long().flip(1).cumsum(1).flip(1) == 1)  # at most one of k: (B,k)
        seen = (under & last.unsqueeze(1)).any(2)  # (B,M)
        seen = torch.where(hits.any(1, keepdim=True), seen | (left & nowhere), left)  # (B,M)
        right = left & (labels == said[:, step].unsqueeze(1))  # (B,M)
        best = right & seen  # (B,M)
        best = torch.where(best.any(1, keepdim=True), best, right)  # (B,M)
        first = best & (best.long().cumsum(1) == 1)  # at most one of M: (B,M)
        free.append(left)
        looked.append(seen)
        taken.append(first)
        left = left & ~first  # (B,M)
    return _Steps(*(torch.stack(each, dim=1) for each in (free, looked, taken)))


def _any_label(chosen: Tensor, each: Tensor) -> Tensor:
    """Whether some label chosen at a step (B,T,M) has each of X properties (B,M,X): (B,T,X) bool."""
    return torch.bmm(chosen.float(), each.float()) > 0


def _check(said: Tensor, location: Tensor, labels: Tensor, inside: Tensor) -> None:
    if labels.dim() != 2:
        raise ShapeError("labels", "(B,M)", labels.shape)
    if said.dim() != 2 or said.shape[0] != labels.shape[0]:
        raise ShapeError("said", f"({labels.shape[0]},T)", said.shape)
    if location.dim() != 3 or location.shape[:2] != said.shape:
        raise ShapeError("location", f"({said.shape[0]},{said.shape[1]},k)", location.shape)
    if inside.dim() != 4 or inside.shape[:2] != labels.shape:
        raise ShapeError("inside", f"({labels.shape[0]},{labels.shape[1]},h,w)", inside.shape)
