"""Multisets of labels said one by one: the reward that knows no order, and the supervised losses beside it.

Papers: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165),
Section 4; Welleck et al., "Loss Functions for Multiset Prediction", 2018 (arXiv:1711.05246).

=================  ==================================================================  ==============================
2017, Section 4.2  +1 if ŷ_t is among the labels still free, which it then leaves,     :func:`multiset_reward`
                   else −1
2017, Section 4.2  what saying any other class would have been worth                   :func:`multiset_rewards`
2017, Section 4.2  the same for lists: A_t = {y_t}                                     :func:`list_rewards`
2017, Appendix A   cross-entropy of "stop" at step m + 1                               :func:`stop_cross_entropy`
2017, Section 5    the baseline: cross-entropy of y_t at step t ≤ m, and of "stop"     :func:`sequence_cross_entropy`
2018, Section 3    KL(π* ‖ π_θ) at step t ≤ m, π* uniform over the labels still free   :func:`multiset_loss`
=================  ==================================================================  ==============================

Labels are (B,M), padded with -1 in any place; m of them are real. Classes are numbered from 0, and the last class of
the logits (B,T,Y) is "stop". Losses are summed over the steps of an example and averaged over examples. Of an example
with more labels than there are steps the first T count, and it is never told to stop.

Deviations from the papers: π* gives a label that is free twice twice the probability, as the authors' code does; the
second paper ends by a classifier of its own, here "stop" is a class as in the first.

**Rewards by looks.** They tie what a reader of multisets says to where it looks, and the other way round; needs boxes.

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

**Single objects.** Losses of a classifier of single objects: one object per picture, or each object at its own place.

Paper: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165),
Section 5, "Implementation Details": cross-entropy of the one object of a picture. Ours is what becomes of it where a
picture has several, and where boxes say where each of them is.

Labels (B,M) are numbers of classes, then -1; boxes (B,M,4) that are not known are NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


def multiset_reward(said: Tensor, labels: Tensor) -> Tensor:
    """+1 where a label was said (B,T) that was still free among ``labels`` (B,M), else −1: (B,T).

    The n-th mention of a class is right if the labels hold it n times or more; no order of them matters.

    >>> multiset_reward(torch.tensor([[3, 7, 3, 3]]), torch.tensor([[7, 3, 3, -1]])).tolist()
    [[1.0, 1.0, 1.0, -1.0]]
    """
    classes = int(max(said.max(), labels.max())) + 1
    rewards = multiset_rewards(said, labels, classes)  # (B,T,Y)
    return rewards.gather(2, said.unsqueeze(2)).squeeze(2)


def multiset_rewards(said: Tensor, labels: Tensor, classes: int) -> Tensor:
    """What each of ``classes`` Y would be worth at each step, after what was ``said`` (B,T) before it: (B,T,Y).

    >>> multiset_rewards(torch.tensor([[1, 1]]), torch.tensor([[1, 0]]), 3).tolist()
    [[[1.0, 1.0, -1.0], [1.0, -1.0, -1.0]]]
    """
    return _signed(_left(said, labels, classes) > 0)


def list_rewards(said: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The same for lists, where nothing that was said before matters: (B,T,Y)."""
    wanted = _in_turn(labels, said.shape[1])  # (B,T)
    return _signed(wanted.unsqueeze(2) == torch.arange(classes, device=labels.device))


def label_steps(labels: Tensor, steps: int) -> Tensor:
    """Which of ``steps`` T have a label to say, the first m: (B,M) → (B,T) bool."""
    return torch.arange(steps, device=labels.device) < (labels >= 0).sum(1, keepdim=True)


def stop_cross_entropy(class_logits: Tensor, labels: Tensor) -> Tensor:
    """−log p(stop) at step m + 1, logits (B,T,Y): (B,), and 0 where the steps end before."""
    steps, stop = class_logits.shape[1], class_logits.shape[2] - 1
    m = (labels >= 0).sum(1)  # (B,)
    here = torch.arange(steps, device=labels.device) == m.unsqueeze(1)  # (B,T)
    return -(class_logits.log_softmax(-1)[..., stop] * here).sum(1)


def sequence_cross_entropy(class_logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the labels in the order in which they come, then of "stop"; a scalar."""
    steps = class_logits.shape[1]
    wanted = _in_turn(labels, steps)  # (B,T)
    log_prob = class_logits.log_softmax(-1).gather(-1, wanted.clamp_min(0).unsqueeze(-1)).squeeze(-1)  # (B,T)
    told = -(log_prob * (wanted >= 0)).sum(1)  # (B,)
    return (told + stop_cross_entropy(class_logits, labels)).mean()


def multiset_loss(class_logits: Tensor, said: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy to the labels still free after what was ``said`` (B,T), then to "stop"; a scalar.

    The divergence itself less the entropy of π*, which no parameter reaches.
    """
    steps, classes = class_logits.shape[1], class_logits.shape[2]
    left = _left(said, labels, classes).to(class_logits.dtype)  # (B,T,Y)
    oracle = left / left.sum(-1, keepdim=True).clamp_min(1)  # π*: (B,T,Y)
    each = -(oracle * class_logits.log_softmax(-1)).sum(-1)  # (B,T)
    told = (each * label_steps(labels, steps)).sum(1)  # (B,)
    return (told + stop_cross_entropy(class_logits, labels)).mean()


def count_loss(count_logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of how often each class occurs, logits (B,C,most+1), summed over classes; a scalar.

    More than ``most`` counts as ``most``.
    """
    classes, most = count_logits.shape[1], count_logits.shape[2] - 1
    counts = label_counts(labels, classes).clamp_max(most)  # (B,C)
    return F.cross_entropy(count_logits.flatten(0, 1), counts.flatten(), reduction="sum") / labels.shape[0]


def _signed(right: Tensor) -> Tensor:
    return right.float() * 2 - 1


def label_counts(labels: Tensor, classes: int) -> Tensor:
    """How often each class occurs among the labels (B,M): (B,C)."""
    every = torch.arange(classes, device=labels.device)  # (C,)
    return (labels.unsqueeze(2) == every).sum(1)


def _left(said: Tensor, labels: Tensor, classes: int) -> Tensor:
    """How many labels (B,M) of each class are still free before each step of what was ``said`` (B,T): (B,T,Y)."""
    mentions = (said.unsqueeze(2) == torch.arange(classes, device=said.device)).long()  # (B,T,Y)
    taken = mentions.cumsum(1) - mentions  # before each step: (B,T,Y)
    return (label_counts(labels, classes).unsqueeze(1) - taken).clamp_min(0)


def _in_turn(labels: Tensor, steps: int) -> Tensor:
    """The real ones of the labels (B,M), in their order, at the first of ``steps`` T, and -1 behind them: (B,T)."""
    real = labels >= 0  # (B,M)
    turn = torch.arange(steps, device=labels.device).unsqueeze(1)  # (T,1)
    here = (real.cumsum(1).unsqueeze(1) == turn + 1) & real.unsqueeze(1)  # (B,T,M)
    return ((labels.unsqueeze(1) + 1) * here).sum(2) - 1


def single_object_loss(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Cross-entropy of the first label (B,M) of each picture that has one, from logits (B,C); ``single_accuracy``."""
    first = labels[:, 0]  # (B,): where labels are shuffled, any of them
    held = (first >= 0).to(logits.dtype)  # (B,)
    each = F.cross_entropy(logits, first.clamp(min=0), reduction="none") * held  # (B,)
    pictures = held.sum().clamp(min=1)
    return {"loss": each.sum() / pictures, "single_accuracy": names_one(logits, labels).sum() / pictures}


def object_loss(logits: Tensor, labels: Tensor, boxes: Tensor) -> dict[str, Tensor]:
    """Cross-entropy of each label (B,M) that has a box (B,M,4), from logits (B,M,C); ``object_accuracy``."""
    right, known = names_each(logits, labels, boxes)  # (B,M) each
    each = F.cross_entropy(logits.transpose(1, 2), labels.clamp(min=0), reduction="none") * known  # (B,M)
    objects = known.sum().clamp(min=1)
    return {"object_loss": each.sum() / objects, "object_accuracy": (right & known).sum() / objects}


def names_one(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether the likeliest class (B,C) is one of the labels (B,M): (B,) bool."""
    return (labels == logits.argmax(-1, keepdim=True)).any(1)


def names_each(logits: Tensor, labels: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Where the likeliest class (B,M,C) is the label (B,M), and where there is a label with a box (B,M,4): bool."""
    return logits.argmax(-1) == labels, (labels >= 0) & ~boxes.isnan().any(-1)


class LookedRewards(NamedTuple):
    """What the actions of a rollout are worth, given each other."""

    classes: Tensor  # (B,T,Y): of every class that could have been said
    glimpses: Tensor  # (B,T,h,w): factor of P_t at every cell that could have been glimpsed


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
