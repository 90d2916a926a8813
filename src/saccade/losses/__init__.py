"""Losses: plain functions of tensors, one idea per file."""

from saccade.losses.captions import (
    caption_cross_entropy,
    doubly_stochastic,
    hard_attention_loss,
    smoothed_cross_entropy,
    word_log_likelihood,
)
from saccade.losses.hsal import hsal_expected_loss, hsal_loss
from saccade.losses.likelihood import binary_cross_entropy, cross_entropy, log_likelihood_of_set
from saccade.losses.maps import evidence_loss
from saccade.losses.multiset import (
    LookedRewards,
    count_loss,
    list_reward,
    list_rewards,
    looked_rewards,
    multiset_loss,
    multiset_reward,
    multiset_rewards,
    object_loss,
    sequence_cross_entropy,
    single_object_loss,
    stop_cross_entropy,
)
from saccade.losses.policy import (
    PolicyLoss,
    leave_one_out,
    policy_gradient,
    reinforce,
    rewards_to_go,
    self_critical_loss,
)

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
