"""Multisets of labels named one by one: rewards that know no order, supervised losses, and the objective of HSAL-RL.

Papers: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165);
Welleck et al., "Loss Functions for Multiset Prediction", 2018 (arXiv:1711.05246).

=================  ==================================================================  ==============================
2017, Section 4.2  +1 if ŷ_t is among the labels still free, which it then leaves,     :func:`multiset_reward`
                   else −1
2017, Section 4.2  what naming any other class would have been worth                   :func:`multiset_rewards`
2017, Section 4.2  the same for lists: A_t = {y_t}                                     :func:`list_rewards`
2017, Section 4.2  Σ_t,i log p_t,i (V(s_t,i) − R_t,i) at meta steps t ≤ m; of k        :func:`hsal_loss`
                   glimpses (R = P there) and a class
2017, Appendix A   V learns by its squared error to the observed reward                :func:`hsal_loss`
2017, Appendix A   cross-entropy of "stop" at step m + 1                               :func:`stop_cross_entropy`
2017, Section 5    the baseline: cross-entropy of y_t at step t ≤ m, and of "stop"     :func:`sequence_cross_entropy`
2017, Section 5    cross-entropy of the one object of a picture; here also of each     :func:`single_object_loss`,
                   object of several, where boxes say where it is                      :func:`object_loss`
2018, Section 3    KL(π* ‖ π_θ) at step t ≤ m, π* uniform over the labels still free   :func:`multiset_loss`
=================  ==================================================================  ==============================

Labels are (B,M), padded with -1 in any place; m of them are real. Classes are numbered from 0, and the last class of
the logits (B,T,Y) is "stop". Losses are summed over the steps of an example and averaged over examples. Of an example
with more labels than steps the first T count, and "stop" is never its target. Unknown boxes (B,M,4) are NaN. Other
axes: T meta steps, k glimpses, h and w cells.

In the model, the layers that choose glimpses and that tell V see a detached state. So the recurrent networks and the
mask learn from what was named, never from where the model looked.

Deviations: π* gives a label that is free twice twice the probability, as the authors' code does; the second paper ends
by a classifier of its own, here "stop" is a class as in the first. The objective of HSAL-RL is the total reward while
its surrogate judges each action by its own; the surrogate is followed, and ``to_go`` is the other reading. The entropy
bonus is from the authors' later code. :func:`hsal_expected_loss` and ``log_glimpses`` are in no paper.

**Rewards by looks** (:func:`looked_rewards`), in no paper, tie what is named to where the model looks; they need boxes,
and change two rewards of Section 4.2 by one number, ``elsewhere`` = e in −1 .. 1:

==========================================  =====================  =================
what is rewarded at meta step t             published              here
==========================================  =====================  =================
naming a free label that is looked at       +1                     +1
naming another free label                   +1                     e
naming anything else                        −1                     −1
a glimpse at a cell of the label's box      P_t at the cell        P_t at the cell
a glimpse at any other cell                 P_t at the cell        e · P_t
==========================================  =====================  =================

A label is *looked at* if the step's last glimpse on a free label lies on it: the centre of the cell is inside its box.
Where no glimpse of the step does, every free label counts as looked at. The label of a glimpse is the one named at its
step; of two equal digits the one looked at, else the first. Where nothing free was named, it is every free label. If
none of these has a box, every cell counts as inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.losses.policy import policy_gradient, rewards_to_go
from saccade.trace import MultisetOutput

LEAST_PRIORITY = 0.05  # added to P_t where the log of a reward is maximised


def multiset_reward(predicted: Tensor, labels: Tensor) -> Tensor:
    """+1 where a label still free among ``labels`` (B,M) is ``predicted`` (B,T), else −1: (B,T).

    The n-th mention of a class is right if the labels hold it n times or more; no order of them matters.

    >>> multiset_reward(torch.tensor([[3, 7, 3, 3]]), torch.tensor([[7, 3, 3, -1]])).tolist()
    [[1.0, 1.0, 1.0, -1.0]]
    """
    classes = int(max(predicted.max(), labels.max())) + 1
    rewards = multiset_rewards(predicted, labels, classes)  # (B,T,Y)
    return rewards.gather(2, predicted.unsqueeze(2)).squeeze(2)


def multiset_rewards(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The reward of each of ``classes`` Y at each step, after the classes ``predicted`` (B,T) before it: (B,T,Y).

    >>> multiset_rewards(torch.tensor([[1, 1]]), torch.tensor([[1, 0]]), 3).tolist()
    [[[1.0, 1.0, -1.0], [1.0, -1.0, -1.0]]]
    """
    return torch.where(_left(predicted, labels, classes) > 0, 1.0, -1.0)


def list_rewards(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The same for lists, where earlier predictions do not matter: (B,T,Y)."""
    wanted = _in_turn(labels, predicted.shape[1])  # (B,T)
    return torch.where(wanted.unsqueeze(2) == torch.arange(classes, device=labels.device), 1.0, -1.0)


def label_steps(labels: Tensor, steps: int) -> Tensor:
    """The first m of ``steps`` T, which have a label: (B,M) → (B,T) bool."""
    return torch.arange(steps, device=labels.device) < (labels >= 0).sum(1, keepdim=True)


def stop_cross_entropy(class_logits: Tensor, labels: Tensor) -> Tensor:
    """−log p(stop) at step m + 1, logits (B,T,Y): (B,), 0 if the steps end before."""
    steps, stop = class_logits.shape[1], class_logits.shape[2] - 1
    m = (labels >= 0).sum(1)  # (B,)
    here = torch.arange(steps, device=labels.device) == m.unsqueeze(1)  # (B,T)
    return -(class_logits.log_softmax(-1)[..., stop] * here).sum(1)


def sequence_cross_entropy(class_logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the labels in their order, then of "stop"; a scalar."""
    steps = class_logits.shape[1]
    wanted = _in_turn(labels, steps)  # (B,T)
    log_prob = class_logits.log_softmax(-1).gather(-1, wanted.clamp_min(0).unsqueeze(-1)).squeeze(-1)  # (B,T)
    label_loss = -(log_prob * (wanted >= 0)).sum(1)  # (B,)
    return (label_loss + stop_cross_entropy(class_logits, labels)).mean()


def multiset_loss(class_logits: Tensor, predicted: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy to the labels still free after those ``predicted`` (B,T), then to "stop"; a scalar.

    This is the divergence without the constant entropy of π*.
    """
    steps, classes = class_logits.shape[1], class_logits.shape[2]
    left = _left(predicted, labels, classes).to(class_logits.dtype)  # (B,T,Y)
    oracle = left / left.sum(-1, keepdim=True).clamp_min(1)  # π*: (B,T,Y)
    losses = -(oracle * class_logits.log_softmax(-1)).sum(-1)  # (B,T)
    label_loss = (losses * label_steps(labels, steps)).sum(1)  # (B,)
    return (label_loss + stop_cross_entropy(class_logits, labels)).mean()


def count_loss(count_logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of how often each class occurs, logits (B,C,most+1), summed over classes; a scalar.

    More than ``most`` counts as ``most``.
    """
    classes, most = count_logits.shape[1], count_logits.shape[2] - 1
    counts = label_counts(labels, classes).clamp_max(most)  # (B,C)
    return F.cross_entropy(count_logits.flatten(0, 1), counts.flatten(), reduction="sum") / labels.shape[0]


def label_counts(labels: Tensor, classes: int) -> Tensor:
    """How often each class occurs among the labels (B,M): (B,C)."""
    every = torch.arange(classes, device=labels.device)  # (C,)
    return (labels.unsqueeze(2) == every).sum(1)


def _left(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The labels (B,M) of each class still free before each of the steps ``predicted`` (B,T): (B,T,Y)."""
    mentions = (predicted.unsqueeze(2) == torch.arange(classes, device=predicted.device)).long()  # (B,T,Y)
    taken = mentions.cumsum(1) - mentions  # before each step: (B,T,Y)
    return (label_counts(labels, classes).unsqueeze(1) - taken).clamp_min(0)


def _in_turn(labels: Tensor, steps: int) -> Tensor:
    """The real labels (B,M), in order, at the first of ``steps`` T, then -1: (B,T)."""
    real = labels >= 0  # (B,M)
    turn = torch.arange(steps, device=labels.device).unsqueeze(1)  # (T,1)
    here = (real.cumsum(1).unsqueeze(1) == turn + 1) & real.unsqueeze(1)  # (B,T,M)
    return ((labels.unsqueeze(1) + 1) * here).sum(2) - 1


def single_object_loss(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Cross-entropy of the first label (B,M) of each picture that has one, logits (B,C); ``single_accuracy``."""
    first = labels[:, 0]  # (B,): where labels are shuffled, any of them
    has_label = (first >= 0).to(logits.dtype)  # (B,)
    losses = F.cross_entropy(logits, first.clamp(min=0), reduction="none") * has_label  # (B,)
    pictures = has_label.sum().clamp(min=1)
    return {"loss": losses.sum() / pictures, "single_accuracy": names_one(logits, labels).sum() / pictures}


def object_loss(logits: Tensor, labels: Tensor, boxes: Tensor) -> dict[str, Tensor]:
    """Cross-entropy of each label (B,M) with a box (B,M,4), logits (B,M,C); ``object_accuracy``."""
    right, has_box = label_matches(logits, labels, boxes)  # (B,M) each
    losses = F.cross_entropy(logits.transpose(1, 2), labels.clamp(min=0), reduction="none") * has_box  # (B,M)
    objects = has_box.sum().clamp(min=1)
    return {"object_loss": losses.sum() / objects, "object_accuracy": (right & has_box).sum() / objects}


def names_one(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether the likeliest class (B,C) is one of the labels (B,M): (B,) bool."""
    return (labels == logits.argmax(-1, keepdim=True)).any(1)


def label_matches(logits: Tensor, labels: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Where the likeliest class (B,M,C) is the label (B,M), and where a label has a box (B,M,4): bool."""
    return logits.argmax(-1) == labels, (labels >= 0) & ~boxes.isnan().any(-1)


class LookedRewards(NamedTuple):
    """The rewards of the actions of a rollout, given each other."""

    classes: Tensor  # (B,T,Y): of every class that could have been said
    glimpses: Tensor  # (B,T,h,w): factor of P_t at every cell that could have been glimpsed


def looked_rewards(
    predicted: Tensor, location: Tensor, labels: Tensor, inside: Tensor, *, classes: int, elsewhere: float
) -> LookedRewards:
    """The rewards of a rollout.

    >>> predicted, location, labels = torch.tensor([[7]]), torch.tensor([[[0]]]), torch.tensor([[3, 7]])
    >>> inside = torch.tensor([[[[True, False]], [[False, True]]]])  # the 3 on the left cell, the 7 on the right one
    >>> rewards = looked_rewards(predicted, location, labels, inside, classes=9, elsewhere=0.5)
    >>> rewards.classes[0, 0, [3, 7, 8]].tolist(), rewards.glimpses[0, 0].tolist()
    ([1.0, 0.5, -1.0], [[0.5, 1.0]])

    Args:
        predicted: (B,T) classes.
        location: (B,T,k) glimpsed cells, numbered row by row.
        labels: (B,M), padded with -1.
        inside: (B,M,h,w) bool, which cells belong to the box of each label; none where there is no box.
        classes: Y.
        elsewhere: e, from −1 to 1.
    """
    free, looked, taken = _follow(predicted, location, labels, inside)
    is_class = labels.unsqueeze(2) == torch.arange(classes, device=labels.device)  # (B,M,Y)
    is_free, is_looked_at = (_any_label(chosen, is_class) for chosen in (free, looked))  # (B,T,Y) each
    worth = torch.where(is_looked_at, 1.0, torch.where(is_free, elsewhere, -1.0))  # (B,T,Y)
    meant = torch.where(taken.any(2, keepdim=True), taken, free)  # (B,T,M)
    cells = _any_label(meant, inside.flatten(2))  # (B,T,N)
    cells = cells | ~cells.any(2, keepdim=True)  # (B,T,N)
    factor = torch.where(cells, 1.0, elsewhere).reshape(*predicted.shape, *inside.shape[2:])  # (B,T,h,w)
    return LookedRewards(worth, factor)


def _follow(predicted: Tensor, location: Tensor, labels: Tensor, inside: Tensor) -> list[Tensor]:
    """Which labels are free, looked at, and taken by being predicted at each step, (B,T,M) bool each."""
    many, glimpses = labels.shape[1], location.shape[2]
    left = labels >= 0  # (B,M)
    nowhere = ~inside.flatten(2).any(2)  # no cell belongs to them, so they cannot be looked at: (B,M)
    free, looked, taken = [], [], []
    for step in range(predicted.shape[1]):
        cells = location[:, step].unsqueeze(1).expand(-1, many, glimpses)  # (B,M,k)
        under = inside.flatten(2).gather(2, cells) & left.unsqueeze(2)  # (B,M,k)
        hits = under.any(1)  # (B,k)
        last = hits & (hits.long().flip(1).cumsum(1).flip(1) == 1)  # at most one of k: (B,k)
        is_seen = (under & last.unsqueeze(1)).any(2)  # (B,M)
        is_seen = torch.where(hits.any(1, keepdim=True), is_seen | (left & nowhere), left)  # (B,M)
        right = left & (labels == predicted[:, step].unsqueeze(1))  # (B,M)
        best = right & is_seen  # (B,M)
        best = torch.where(best.any(1, keepdim=True), best, right)  # (B,M)
        first = best & (best.long().cumsum(1) == 1)  # at most one of M: (B,M)
        free.append(left)
        looked.append(is_seen)
        taken.append(first)
        left = left & ~first  # (B,M)
    return [torch.stack(steps, dim=1) for steps in (free, looked, taken)]


def _any_label(chosen: Tensor, members: Tensor) -> Tensor:
    """Whether a label chosen at a step (B,T,M) has each of X properties (B,M,X): (B,T,X) bool."""
    return torch.bmm(chosen.float(), members.float()) > 0


def hsal_loss(
    output: MultisetOutput,
    labels: Tensor,
    *,
    rewards: Callable[[Tensor, Tensor, int], Tensor] = multiset_rewards,
    entropy_weight: float = 0.0,
    to_go: bool = False,
    looked: LookedRewards | None = None,
) -> dict[str, Tensor]:
    """Scalars by name: ``loss`` is minimised, the others are its parts and the mean rewards.

    Args:
        output: of a rollout in training.
        labels: (B,M), padded with -1.
        rewards: of every class (B,T,Y), by the predicted classes, the labels and Y.
        entropy_weight: of the bonus.
        to_go: whether an action is judged by all rewards from it on.
        looked: replaces ``rewards``, and scales those of glimpses; None: as published.
    """
    predicted, glimpses = output.said, output.location_reward.shape[-1]
    steps = label_steps(labels, predicted.shape[1])  # (B,T)
    counts = steps.unsqueeze(-1).expand(-1, -1, glimpses + 1).flatten(1)  # (B,T·(k+1))
    glimpsed = _worth_of_glimpses(output, looked)  # (B,T,k)
    worth = rewards(predicted, labels, output.logits.shape[-1]) if looked is None else looked.classes  # (B,T,Y)
    class_reward = worth.gather(-1, predicted.unsqueeze(-1)).squeeze(-1).to(glimpsed.dtype)  # (B,T)
    gained = _in_time(glimpsed, class_reward)  # (B,T·(k+1))
    parts = policy_gradient(
        _in_time(output.location_log_prob, output.said_log_prob),
        rewards_to_go(gained, counts) if to_go else gained,
        _in_time(output.location_value, output.class_value),
        counts,
    )
    terms = _shared_terms(output, labels, steps, class_reward, glimpsed, entropy_weight)
    terms["loss"] = terms["loss"] + parts.policy + parts.value
    return terms | {"policy_loss": parts.policy, "value_loss": parts.value}


def hsal_expected_loss(
    output: MultisetOutput,
    labels: Tensor,
    *,
    rewards: Callable[[Tensor, Tensor, int], Tensor] = multiset_rewards,
    entropy_weight: float = 0.0,
    looked: LookedRewards | None = None,
    log_glimpses: bool = False,
) -> dict[str, Tensor]:
    """As :func:`hsal_loss`, but each action is judged by the mean over its alternatives: −Σ_a p(a) R(a), summed.

    In every state of a rollout the reward of every class and cell is known. The gradient of their mean is what
    REINFORCE estimates from one draw, so no baseline is needed.

    With ``looked``, a cell's reward depends on the class predicted after the glimpse. Other cells are judged as if the
    same class had been predicted, so the gradient of glimpses is biased. With ``log_glimpses`` a glimpse adds log(Σ_a
    p(a) R(a) / max_a R(a)) instead, whose gradient does not vanish if the right cells have become unlikely. R has P_t +
    0.05 in place of P_t, so that cells outside the mask can be learned, and no rewards below 0.
    """
    predicted, logits, priority = output.said, output.logits, output.acts["priority"].weights.detach()
    steps = label_steps(labels, predicted.shape[1])  # (B,T)
    worth = rewards(predicted, labels, logits.shape[-1]) if looked is None else looked.classes  # (B,T,Y)
    worth = worth.to(logits.dtype)
    named = (logits.softmax(-1) * worth).sum(-1)  # (B,T)
    looks = output.acts["glimpse"].weights.reshape(*priority.shape[:2], -1, *priority.shape[2:])  # (B,T,k,h,w)
    reward = priority + LEAST_PRIORITY if log_glimpses else priority  # (B,T,h,w)
    reward = reward if looked is None else reward * looked.glimpses  # (B,T,h,w)
    if log_glimpses:
        most = reward.amax((2, 3), keepdim=True)  # LEAST_PRIORITY or more: (B,T,1,1)
        share = reward.clamp_min(0) / most  # (B,T,h,w)
        tiny = torch.finfo(share.dtype).tiny  # a larger bound would cut the gradient where it is needed most
        glimpsed = (looks * share.unsqueeze(2)).sum((3, 4)).clamp_min(tiny).log().sum(2)  # of all k: (B,T)
    else:
        glimpsed = (looks * reward.unsqueeze(2)).sum((2, 3, 4))  # of all k: (B,T)
    policy = -((named + glimpsed) * steps).sum() / labels.shape[0]
    drawn = worth.gather(-1, predicted.unsqueeze(-1)).squeeze(-1)  # (B,T)
    terms = _shared_terms(output, labels, steps, drawn, _worth_of_glimpses(output, looked), entropy_weight)
    terms["loss"] = terms["loss"] + policy
    return terms | {"policy_loss": policy}


def _worth_of_glimpses(output: MultisetOutput, looked: LookedRewards | None) -> Tensor:
    reward = output.location_reward  # (B,T,k)
    return reward if looked is None else reward * looked.glimpses.flatten(2).gather(2, output.location)


def _shared_terms(
    output: MultisetOutput, labels: Tensor, steps: Tensor, class_reward: Tensor, glimpsed: Tensor, entropy_weight: float
) -> dict[str, Tensor]:
    """Terms of both losses: "stop", the entropy bonus, and the mean rewards of the draws (B,T[,k]) at ``steps``."""
    stop = stop_cross_entropy(output.logits, labels).mean()
    undecided = output.location_entropy.sum(-1) + output.class_entropy  # (B,T)
    entropy = (undecided * steps).sum() / labels.shape[0]
    many = steps.sum().clamp_min(1)
    return {
        "loss": stop - entropy_weight * entropy,
        "stop_loss": stop,
        "entropy": entropy,
        "class_reward": (class_reward * steps).sum() / many,
        "location_reward": (glimpsed.mean(-1) * steps).sum() / many,
    }


def _in_time(locations: Tensor, classes: Tensor) -> Tensor:
    return torch.cat([locations, classes.unsqueeze(-1)], dim=-1).flatten(1)
