"""Policy gradient with a learned baseline, for actions in a row that are each rewarded.

Papers: Williams 1992; Welleck et al., 2017 (arXiv:1711.05165), Section 4.2: L = Σ log p(a) · (V(s) − R).

Each action is judged by its own reward: the objective that is climbed is the **myopic** one, in which what an action
does to later rewards counts for nothing. :func:`rewards_to_go` gives every action the rewards that come after it too,
and the gradient is then that of the total.

Axes: B examples, A actions in the order in which they were taken.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from saccade.errors import ShapeError


class PolicyLoss(NamedTuple):
    """What teaches the actions, and what teaches the baseline; two scalars to be minimised."""

    policy: Tensor
    value: Tensor


def policy_gradient(log_prob: Tensor, reward: Tensor, value: Tensor, counts: Tensor) -> PolicyLoss:
    """Summed over the actions that count, averaged over examples; the error of the baseline is a mean over actions.

    Args:
        log_prob: log p(a) of each action (B,A).
        reward: R of each action (B,A); no gradient passes through it.
        value: V(s) before each action (B,A); learns by its error alone.
        counts: which actions count (B,A), bool.
    """
    for name, tensor in (("reward", reward), ("value", value), ("counts", counts)):
        if tensor.shape != log_prob.shape:
            raise ShapeError(name, f"{tuple(log_prob.shape)}, one for each action", tensor.shape)
    reward, within = reward.detach(), counts.to(log_prob.dtype)
    judged = log_prob * (value.detach() - reward) * within  # (B,A)
    error = (value - reward).square() * within  # (B,A)
    return PolicyLoss(judged.sum() / log_prob.shape[0], error.sum() / within.sum().clamp_min(1))


def rewards_to_go(reward: Tensor, counts: Tensor) -> Tensor:
    """For each action its reward and all that come after it, of those that count: (B,A)."""
    counted = reward * counts  # (B,A)
    return counted.flip(1).cumsum(1).flip(1)
