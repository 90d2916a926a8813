"""REINFORCE: a gradient for where to look when the location is drawn.

Papers: Williams 1992; Xu et al., "Show, Attend and Tell", 2015 (arXiv:1502.03044), Section 4.1.

================  ================================================================================
Xu, Eq. (10)      L = Σ_s p(s) log p(y|s) ≤ log p(y): the bound that is climbed
Xu, Eq. (12, 14)  ∇L ≈ mean over draws of ∇log p(y|s) + (log p(y|s) − b) ∇log p(s), + λ ∇H[p(s)]
================  ================================================================================

:func:`reinforce` is the loss with that gradient.

The bound is another objective than the marginal log Σ_s p(s) p(y|s), and its gradient is another gradient.

Deviations from the paper: by default the baseline b of a draw is the mean reward of the other draws for the same
example (Kool et al. 2019), which needs no state; the paper's moving average over batches can be given instead. The
reward is not scaled (λ_r = 1).

Axes: B examples, S draws.
"""

from __future__ import annotations

from torch import Tensor

from saccade.errors import ShapeError


def reinforce(
    log_likelihood: Tensor,
    log_prob: Tensor,
    *,
    baseline: Tensor | None = None,
    entropy: Tensor | None = None,
    entropy_weight: float = 0.0,
) -> Tensor:
    """A scalar to be minimised: its value is −L as the draws estimate it, its gradient is unbiased for that of −L.

    Args:
        log_likelihood: log p(y|s) of each draw (B,S); learns directly, and is the reward (without a gradient).
        log_prob: log p(s) of each draw (B,S).
        baseline: what the reward is compared with, anything that spreads to (B,S) and does not depend on the draw, such
            as a moving average kept by the caller; None: :func:`leave_one_out`.
        entropy: H of the distribution of s (B,), added to L with ``entropy_weight``.
        entropy_weight: λ.
    """
    if log_likelihood.dim() != 2:
        raise ShapeError("log_likelihood", "(B,S)", log_likelihood.shape)
    if log_prob.shape != log_likelihood.shape:
        raise ShapeError("log_prob", f"{tuple(log_likelihood.shape)}, one for each draw", log_prob.shape)
    reward = log_likelihood.detach()
    advantage = reward - (leave_one_out(reward) if baseline is None else baseline.detach())  # (B,S)
    score = advantage * (log_prob - log_prob.detach())  # worth 0, for its gradient alone: (B,S)
    bound = (log_likelihood + score).mean()
    return -bound if entropy is None else -bound - entropy_weight * entropy.mean()


def leave_one_out(reward: Tensor) -> Tensor:
    """For each draw the mean reward of the other draws of its example: (B,S) → (B,S), S at least 2."""
    draws = reward.shape[-1]
    if reward.dim() != 2 or draws < 2:
        raise ShapeError("reward", "(B,S) with at least 2 draws, or give a baseline", reward.shape)
    return (reward.sum(-1, keepdim=True) - reward) / (draws - 1)
