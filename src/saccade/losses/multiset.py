"""Multisets of labels said one by one: the reward that knows no order, and the supervised losses beside it.

Papers: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165),
Section 4; Welleck et al., "Loss Functions for Multiset Prediction", 2018 (arXiv:1711.05246).

=================  ==================================================================  ==============================
2017, Section 4.2  +1 if ŷ_t is among the labels still free, which it then leaves,     :func:`multiset_reward`
                   else −1
2017, Section 4.2  the same for lists: A_t = {y_t}                                     :func:`list_reward`
2017, Section 4.2  what saying any other class would have been worth                   :func:`multiset_rewards`
2017, Appendix A   cross-entropy of "stop" at step m + 1                               :func:`stop_cross_entropy`
2017, Section 5    the baseline: cross-entropy of y_t at step t ≤ m, and of "stop"     :func:`sequence_cross_entropy`
2018, Section 3    KL(π* ‖ π_θ) at step t ≤ m, π* uniform over the labels still free   :func:`multiset_loss`
=================  ==================================================================  ==============================

Labels are (B,M), padded with -1 in any place; m of them are real. Classes are numbered from 0, and the last class of
the logits (B,T,Y) is "stop". Losses are summed over the steps of an example and averaged over examples. Of an example
with more labels than there are steps the first T count, and it is never told to stop.

Deviations from the papers: π* gives a label that is free twice twice the probability, as the authors' code does; the
second paper ends by a classifier of its own, here "stop" is a class as in the first.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import ShapeError


def multiset_reward(said: Tensor, labels: Tensor) -> Tensor:
    """+1 where a label was said (B,T) that was still free among ``labels`` (B,M), else −1: (B,T).

    The n-th mention of a class is right if the labels hold it n times or more; no order of them matters.

    >>> multiset_reward(torch.tensor([[3, 7, 3, 3]]), torch.tensor([[7, 3, 3, -1]])).tolist()
    [[1.0, 1.0, 1.0, -1.0]]
    """
    _check(said, labels)
    alike = (said.unsqueeze(2) == said.unsqueeze(1)).int()  # (B,T,T)
    mention = alike.tril().sum(2)  # of its class so far, this one included: (B,T)
    return _signed(mention <= _held(said, labels))


def list_reward(said: Tensor, labels: Tensor) -> Tensor:
    """+1 where ``said`` (B,T) is the label (B,M) of the same step, else −1: (B,T)."""
    _check(said, labels)
    return _signed((said == _in_turn(labels, said.shape[1])) & (said >= 0))


def multiset_rewards(said: Tensor, labels: Tensor, classes: int) -> Tensor:
    """What each of ``classes`` Y would be worth at each step, after what was ``said`` (B,T) before it: (B,T,Y).

    >>> multiset_rewards(torch.tensor([[1, 1]]), torch.tensor([[1, 0]]), 3).tolist()
    [[[1.0, 1.0, -1.0], [1.0, -1.0, -1.0]]]
    """
    return _signed(_left(said, labels, classes) > 0)


def list_rewards(said: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The same for lists, where nothing that was said before matters: (B,T,Y)."""
    _check(said, labels)
    wanted = _in_turn(labels, said.shape[1])  # (B,T)
    return _signed(wanted.unsqueeze(2) == torch.arange(classes, device=labels.device))


def label_steps(labels: Tensor, steps: int) -> Tensor:
    """Which of ``steps`` T have a label to say, the first m: (B,M) → (B,T) bool."""
    return torch.arange(steps, device=labels.device) < (labels >= 0).sum(1, keepdim=True)


def stop_cross_entropy(class_logits: Tensor, labels: Tensor) -> Tensor:
    """−log p(stop) at step m + 1, logits (B,T,Y): (B,), and 0 where the steps end before."""
    _check_logits(class_logits, labels)
    steps, stop = class_logits.shape[1], class_logits.shape[2] - 1
    m = (labels >= 0).sum(1)  # (B,)
    here = torch.arange(steps, device=labels.device) == m.unsqueeze(1)  # (B,T)
    return -(class_logits.log_softmax(-1)[..., stop] * here).sum(1)


def sequence_cross_entropy(class_logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the labels in the order in which they come, then of "stop"; a scalar."""
    _check_logits(class_logits, labels)
    steps = class_logits.shape[1]
    wanted = _in_turn(labels, steps)  # (B,T)
    log_prob = class_logits.log_softmax(-1).gather(-1, wanted.clamp_min(0).unsqueeze(-1)).squeeze(-1)  # (B,T)
    told = -(log_prob * (wanted >= 0)).sum(1)  # (B,)
    return (told + stop_cross_entropy(class_logits, labels)).mean()


def multiset_loss(class_logits: Tensor, said: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy to the labels still free after what was ``said`` (B,T), then to "stop"; a scalar.

    The divergence itself less the entropy of π*, which no parameter reaches.
    """
    _check_logits(class_logits, labels)
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
    if count_logits.dim() != 3 or labels.dim() != 2 or labels.shape[0] != count_logits.shape[0]:
        raise ShapeError("count_logits", f"({labels.shape[0]},C,most+1) for labels (B,M)", count_logits.shape)
    classes, most = count_logits.shape[1], count_logits.shape[2] - 1
    counts = _counts(labels, classes).clamp_max(most)  # (B,C)
    return F.cross_entropy(count_logits.flatten(0, 1), counts.flatten(), reduction="sum") / labels.shape[0]


def _signed(right: Tensor) -> Tensor:
    return right.float() * 2 - 1


def _held(said: Tensor, labels: Tensor) -> Tensor:
    """How often the labels (B,M) hold what was said (B,T): (B,T)."""
    return ((said.unsqueeze(2) == labels.unsqueeze(1)) & (labels >= 0).unsqueeze(1)).sum(2)


def _counts(labels: Tensor, classes: int) -> Tensor:
    """How often each class occurs among the labels (B,M): (B,C)."""
    every = torch.arange(classes, device=labels.device)  # (C,)
    return (labels.unsqueeze(2) == every).sum(1)


def _left(said: Tensor, labels: Tensor, classes: int) -> Tensor:
    """How many labels (B,M) of each class are still free before each step of what was ``said`` (B,T): (B,T,Y)."""
    _check(said, labels)
    mentions = (said.unsqueeze(2) == torch.arange(classes, device=said.device)).long()  # (B,T,Y)
    taken = mentions.cumsum(1) - mentions  # before each step: (B,T,Y)
    return (_counts(labels, classes).unsqueeze(1) - taken).clamp_min(0)


def _in_turn(labels: Tensor, steps: int) -> Tensor:
    """The real ones of the labels (B,M), in their order, at the first of ``steps`` T, and -1 behind them: (B,T)."""
    real = labels >= 0  # (B,M)
    turn = torch.arange(steps, device=labels.device).unsqueeze(1)  # (T,1)
    here = (real.cumsum(1).unsqueeze(1) == turn + 1) & real.unsqueeze(1)  # (B,T,M)
    return ((labels.unsqueeze(1) + 1) * here).sum(2) - 1


def _check(said: Tensor, labels: Tensor) -> None:
    if labels.dim() != 2:
        raise ShapeError("labels", "(B,M)", labels.shape)
    if said.dim() != 2 or said.shape[0] != labels.shape[0]:
        raise ShapeError("said", f"({labels.shape[0]},T)", said.shape)


def _check_logits(class_logits: Tensor, labels: Tensor) -> None:
    if labels.dim() != 2:
        raise ShapeError("labels", "(B,M)", labels.shape)
    if class_logits.dim() != 3 or class_logits.shape[0] != labels.shape[0]:
        raise ShapeError("class_logits", f"({labels.shape[0]},T,Y)", class_logits.shape)
