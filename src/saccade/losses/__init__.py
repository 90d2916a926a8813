"""Losses: plain functions of tensors, one idea per file."""

from saccade.losses.captions import (
    caption_cross_entropy,
    doubly_stochastic,
    hard_attention_loss,
    smoothed_cross_entropy,
    word_log_likelihood,
)
from saccade.losses.evidence import evidence_loss
from saccade.losses.hsal import hsal_expected_loss, hsal_loss
from saccade.losses.likelihood import binary_cross_entropy, cross_entropy, log_likelihood_of_set
from saccade.losses.looked_labels import LookedRewards, looked_rewards
from saccade.losses.multiset import (
    count_loss,
    list_reward,
    list_rewards,
    multiset_loss,
    multiset_reward,
    multiset_rewards,
    sequence_cross_entropy,
    stop_cross_entropy,
)
from saccade.losses.policy_gradient import PolicyLoss, policy_gradient, rewards_to_go
from saccade.losses.reinforce import leave_one_out, reinforce
from saccade.losses.self_critical import self_critical_loss
from saccade.losses.single_objects import object_loss, single_object_loss

__all__ = [
    "LookedRewards",
    "PolicyLoss",
    "binary_cross_entropy",
    "caption_cross_entropy",
    "count_loss",
    "cross_entropy",
    "doubly_stochastic",
    "evidence_loss",
    "hard_attention_loss",
    "hsal_expected_loss",
    "hsal_loss",
    "leave_one_out",
    "list_reward",
    "list_rewards",
    "log_likelihood_of_set",
    "looked_rewards",
    "multiset_loss",
    "multiset_reward",
    "multiset_rewards",
    "object_loss",
    "policy_gradient",
    "reinforce",
    "rewards_to_go",
    "self_critical_loss",
    "sequence_cross_entropy",
    "single_object_loss",
    "smoothed_cross_entropy",
    "stop_cross_entropy",
    "word_log_likelihood",
]
