"""Policy gradients: of actions with a learned baseline, of drawn locations (REINFORCE), of captions (self-critical).

**Actions in a row** (:func:`policy_gradient`; Williams 1992; Welleck et al. 2017, arXiv:1711.05165, Section 4.2):
L = Σ log p(a) · (V(s) − R). Each action is judged by its own reward: what it does to later rewards counts for nothing.
:func:`rewards_to_go` gives every action the rewards that come after it too, and the gradient is then that of the total.

**Locations** (:func:`reinforce`; Xu et al. 2015, arXiv:1502.03044, Section 4.1):

================  ================================================================================
Xu, Eq. (10)      L = Σ_s p(s) log p(y|s) ≤ log p(y): the bound that is climbed
Xu, Eq. (12, 14)  ∇L ≈ mean over draws of ∇log p(y|s) + (log p(y|s) − b) ∇log p(s), + λ ∇H[p(s)]
================  ================================================================================

Deviations: by default the baseline b of a draw is the mean reward of the other draws for the same example (Kool et al.
2019); the paper's moving average can be given instead. The reward is not scaled (λ_r = 1).

**Captions** (:func:`self_critical_loss`; Rennie et al., CVPR 2017, arXiv:1612.00563, Section 3):

    L = −E[r(w)], w drawn from p,        ∇L ≈ −(r(w) − b) ∇log p(w), b what does not depend on w.

Deviation: there b is the reward of the greedy caption, which is far above what a model draws that has learned little.
Here K captions of a picture are drawn side by side and b of each is the mean reward of the K − 1 others (Luo 2020,
arXiv:2003.09971). Where cells were drawn before the words, p is that of cells and words together.

Axes: B examples, A actions in the order in which they were taken, S draws, K captions.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class PolicyLoss(NamedTuple):
    """Losses of the actions and of the baseline: two scalars."""

    policy: Tensor
    value: Tensor


def policy_gradient(log_prob: Tensor, reward: Tensor, value: Tensor, counts: Tensor) -> PolicyLoss:
    """Summed over the actions that count, averaged over examples; the baseline's error is a mean over actions.

    Args:
        log_prob: log p(a) of each action (B,A).
        reward: R of each action (B,A), without a gradient.
        value: V(s) before each action (B,A); learns by its error alone.
        counts: which actions count (B,A), bool.
    """
    reward, within = reward.detach(), counts.to(log_prob.dtype)
    judged = log_prob * (value.detach() - reward) * within  # (B,A)
    error = (value - reward).square() * within  # (B,A)
    return PolicyLoss(judged.sum() / log_prob.shape[0], error.sum() / within.sum().clamp_min(1))


def rewards_to_go(reward: Tensor, counts: Tensor) -> Tensor:
    """Each action's reward plus all later ones that count: (B,A)."""
    counted = reward * counts  # (B,A)
    return counted.flip(1).cumsum(1).flip(1)


def reinforce(
    log_likelihood: Tensor,
    log_prob: Tensor,
    *,
    baseline: Tensor | None = None,
    entropy: Tensor | None = None,
    entropy_weight: float = 0.0,
) -> Tensor:
    """A scalar to be minimised, an estimate of −L whose gradient is unbiased.

    Args:
        log_likelihood: log p(y|s) of each draw (B,S); learns directly, and is the reward (without a gradient).
        log_prob: log p(s) of each draw (B,S).
        baseline: broadcasts to (B,S) and does not depend on the draw, such as a moving average; None:
            :func:`leave_one_out`.
        entropy: H of the distribution of s (B,), added to L with ``entropy_weight``.
        entropy_weight: λ.
    """
    reward = log_likelihood.detach()
    advantage = reward - (leave_one_out(reward) if baseline is None else baseline.detach())  # (B,S)
    score = advantage * (log_prob - log_prob.detach())  # worth 0, for its gradient alone: (B,S)
    bound = (log_likelihood + score).mean()
    return -bound if entropy is None else -bound - entropy_weight * entropy.mean()


def leave_one_out(reward: Tensor) -> Tensor:
    """The mean reward of the other draws of the same example: (B,S) → (B,S), S at least 2."""
    return (reward.sum(-1, keepdim=True) - reward) / (reward.shape[-1] - 1)


def self_critical_loss(log_prob: Tensor, reward: Tensor) -> Tensor:
    """A scalar to be minimised, of which only the gradient has a meaning: mean over captions.

    ``log_prob`` (B,K,T) is that of each draw, 0 where nothing was drawn; ``reward`` (B,K) is r(w).
    """
    advantage = (reward - leave_one_out(reward)).detach()  # (B,K)
    return -(advantage * log_prob.sum(-1)).mean()
