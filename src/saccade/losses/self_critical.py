"""Self-critical training: a caption that was drawn is judged by how much better it scores than the greedy one.

Paper: Rennie et al., "Self-Critical Sequence Training for Image Captioning", CVPR 2017 (arXiv:1612.00563), Section 3:

    L = −E[r(w)], w drawn from p,        ∇L ≈ −(r(w) − r(ŵ)) ∇log p(w), ŵ the greedy caption.

What the model would say anyway is worth 0, so only captions better or worse than that teach anything; since ŵ does not
depend on the draw, the gradient stays unbiased. Where cells were drawn before the words (Xu et al. 2015), p is that of
cells and words together, and log p(s) is judged beside log p(w).
"""

from __future__ import annotations

from torch import Tensor

from saccade.errors import ShapeError


def self_critical_loss(log_prob: Tensor, reward: Tensor, baseline: Tensor) -> Tensor:
    """A scalar to be minimised, of which only the gradient means something: mean over captions.

    Args:
        log_prob: log p of each draw (B,T), of words, or of words and cells; 0 where nothing was drawn.
        reward: r(w) of each caption (B,); no gradient passes through it.
        baseline: r(ŵ) (B,), what does not depend on the draws.
    """
    for name, tensor in (("reward", reward), ("baseline", baseline)):
        if log_prob.dim() != 2 or tensor.shape != log_prob.shape[:1]:
            raise ShapeError(name, "(B,), one for each caption with log_prob (B,T)", tensor.shape)
    advantage = (reward - baseline).detach()  # (B,)
    return -(advantage * log_prob.sum(1)).mean()
