"""Self-critical training: a caption that was drawn is judged by how much better it scores than others so drawn.

Paper: Rennie et al., "Self-Critical Sequence Training for Image Captioning", CVPR 2017 (arXiv:1612.00563), Section 3:

    L = −E[r(w)], w drawn from p,        ∇L ≈ −(r(w) − b) ∇log p(w), b what does not depend on w.

Deviation: there b is the reward of the greedy caption. A model that has learned little draws captions far below its
greedy ones, so that nearly all it draws is held against it and what it says gets worse. Here K captions of a picture
are drawn side by side and b of each is the mean reward of the K − 1 others (Luo, "A Better Variant of Self-Critical
Sequence Training", 2020, arXiv:2003.09971): as independent of w, and 0 advantage on average.

Where cells were drawn before the words (Xu et al. 2015), p is that of cells and words together, and log p(s) is judged
beside log p(w).
"""

from __future__ import annotations

from torch import Tensor

from saccade.errors import ShapeError
from saccade.losses.reinforce import leave_one_out


def self_critical_loss(log_prob: Tensor, reward: Tensor) -> Tensor:
    """A scalar to be minimised, of which only the gradient means something: mean over captions.

    Args:
        log_prob: log p of each draw (B,K,T), of words, or of words and cells; 0 where nothing was drawn.
        reward: r(w) of each of the K captions of a picture (B,K); no gradient passes through it.
    """
    if log_prob.dim() != 3 or reward.shape != log_prob.shape[:2]:
        raise ShapeError("reward", "(B,K), one for each caption with log_prob (B,K,T)", reward.shape)
    if reward.shape[1] < 2:
        raise ShapeError("reward", "(B,K) with K of 2 or more: a caption is judged by the others", reward.shape)
    advantage = (reward - leave_one_out(reward)).detach()  # (B,K)
    return -(advantage * log_prob.sum(-1)).mean()
