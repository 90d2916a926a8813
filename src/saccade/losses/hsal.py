"""The objective of HSAL-RL, from the plain tensors of a rollout.

Paper: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165).

==============  ===============================================================================================
Section 4.2     Σ_t,i log p_t,i (V(s_t,i) − R_t,i) at meta steps t ≤ m; of k glimpses (R = P there) and a class
Appendix A      V learns by its squared error to the observed reward
Appendix A      cross-entropy of "stop" at meta step m + 1
==============  ===============================================================================================

Which part reaches which parameter is decided in the model: there the layers that choose glimpses and that tell V see a
detached state. So the recurrent networks and the mask learn from what was said, never from where the model looked.

Deviations from the paper: none by default. Its objective is the total reward while its surrogate judges each action by
its own; the surrogate is followed, and ``to_go`` is the other reading. The entropy bonus is the authors' later code's.
Beyond the paper: :func:`hsal_expected_loss` is the same surrogate without the noise of the draws that it judges;
``looked`` rewards saying what is looked at, see :mod:`saccade.losses.multiset`; ``log_glimpses`` maximises
the log of a glimpse's mean reward.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from saccade.losses.multiset import LookedRewards, label_steps, multiset_rewards, stop_cross_entropy
from saccade.losses.policy import policy_gradient, rewards_to_go
from saccade.trace import MultisetOutput

LEAST_PRIORITY = 0.05  # added to P_t where the log of a reward is maximised


def hsal_loss(
    output: MultisetOutput,
    labels: Tensor,
    *,
    rewards: Callable[[Tensor, Tensor, int], Tensor] = multiset_rewards,
    entropy_weight: float = 0.0,
    to_go: bool = False,
    looked: LookedRewards | None = None,
) -> dict[str, Tensor]:
    """Scalars by name: ``loss`` is to be minimised, the others are its parts and the mean rewards.

    Args:
        output: of a rollout in training.
        labels: (B,M), padded with -1.
        rewards: of every class (B,T,Y), given the classes said, the labels and Y; for lists
            :func:`saccade.losses.multiset.list_rewards`.
        entropy_weight: price of being decided, added for every action that counts.
        to_go: whether an action is judged by all rewards from it on, not by its own alone.
        looked: rewards that take the place of ``rewards``, and factors of those of the glimpses; None: as published.
    """
    said, glimpses = output.said, output.location_reward.shape[-1]
    steps = label_steps(labels, said.shape[1])  # (B,T)
    counts = steps.unsqueeze(-1).expand(-1, -1, glimpses + 1).flatten(1)  # (B,T·(k+1))
    glimpsed = _worth_of_glimpses(output, looked)  # (B,T,k)
    worth = rewards(said, labels, output.logits.shape[-1]) if looked is None else looked.classes  # (B,T,Y)
    said_reward = worth.gather(-1, said.unsqueeze(-1)).squeeze(-1).to(glimpsed.dtype)  # (B,T)
    gained = _in_time(glimpsed, said_reward)  # (B,T·(k+1))
    parts = policy_gradient(
        _in_time(output.location_log_prob, output.said_log_prob),
        rewards_to_go(gained, counts) if to_go else gained,
        _in_time(output.location_value, output.class_value),
        counts,
    )
    told = _told(output, labels, steps, said_reward, glimpsed, entropy_weight)
    told["loss"] = told["loss"] + parts.policy + parts.value
    return told | {"policy_loss": parts.policy, "value_loss": parts.value}


def hsal_expected_loss(
    output: MultisetOutput,
    labels: Tensor,
    *,
    rewards: Callable[[Tensor, Tensor, int], Tensor] = multiset_rewards,
    entropy_weight: float = 0.0,
    looked: LookedRewards | None = None,
    log_glimpses: bool = False,
) -> dict[str, Tensor]:
    """As :func:`hsal_loss`, each action judged by what all its alternatives were worth: −Σ_a p(a) R(a), summed.

    In every state of a rollout the reward of every class and cell is known, not only of the one drawn. The gradient of
    their mean is what REINFORCE estimates from one draw, so there is no baseline to learn; rollouts are drawn as ever.
    With ``looked`` that holds for classes only.

    Args:
        output: as there.
        labels: (B,M), padded with -1.
        rewards: as there.
        entropy_weight: as there.
        looked: as there. What a cell is worth depends on what was said after the glimpse that was drawn. The cells
            that were not drawn are judged as if the same had been said, so for glimpses the gradient is biased.
        log_glimpses: a glimpse adds log(Σ_a p(a) R(a) / max_a R(a)) in place of Σ_a p(a) R(a). Its gradient does not
            vanish where the right cells have become unlikely. R has P_t + 0.05 in place of P_t, so that cells which
            the mask leaves out can be learned, and no rewards below 0.
    """
    said, logits, priority = output.said, output.logits, output.acts["priority"].weights.detach()
    steps = label_steps(labels, said.shape[1])  # (B,T)
    worth = rewards(said, labels, logits.shape[-1]) if looked is None else looked.classes  # (B,T,Y)
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
    drawn = worth.gather(-1, said.unsqueeze(-1)).squeeze(-1)  # (B,T)
    told = _told(output, labels, steps, drawn, _worth_of_glimpses(output, looked), entropy_weight)
    told["loss"] = told["loss"] + policy
    return told | {"policy_loss": policy}


def _worth_of_glimpses(output: MultisetOutput, looked: LookedRewards | None) -> Tensor:
    """The rewards of the glimpses that were drawn: (B,T,k)."""
    reward = output.location_reward  # (B,T,k)
    return reward if looked is None else reward * looked.glimpses.flatten(2).gather(2, output.location)


def _told(
    output: MultisetOutput,
    labels: Tensor,
    steps: Tensor,
    said_reward: Tensor,
    glimpsed: Tensor,
    entropy_weight: float,
) -> dict[str, Tensor]:
    """What both have in common: "stop", the entropy bonus, and the mean rewards of the draws (B,T[,k]) at ``steps``."""
    stop = stop_cross_entropy(output.logits, labels).mean()
    undecided = output.location_entropy.sum(-1) + output.class_entropy  # (B,T)
    entropy = (undecided * steps).sum() / labels.shape[0]
    many = steps.sum().clamp_min(1)
    return {
        "loss": stop - entropy_weight * entropy,
        "stop_loss": stop,
        "entropy": entropy,
        "class_reward": (said_reward * steps).sum() / many,
        "location_reward": (glimpsed.mean(-1) * steps).sum() / many,
    }


def _in_time(locations: Tensor, classes: Tensor) -> Tensor:
    """What belongs to glimpses (B,T,k) and to classes (B,T), in the order of the actions: (B,T·(k+1))."""
    return torch.cat([locations, classes.unsqueeze(-1)], dim=-1).flatten(1)
