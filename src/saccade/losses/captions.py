"""Losses of a captioner: the words, a penalty for cells that get no attention, and the sampled cells of hard attention.

Paper: Xu et al., "Show, Attend and Tell", 2015 (arXiv:1502.03044).

===============  ==========================================================================  ========================
Eq. (14), left   −log p(y|x), summed over the words                                          ``caption_cross_entropy``
Eq. (14), right  Σ_i (1 − Σ_t α_ti)²                                                         ``doubly_stochastic``
Eq. (10)         L = Σ_s p(s|a) log p(y|s,a) ≤ log p(y|a), the bound                         ``hard_attention_loss``
Eq. (11, 12)     ∇L ≈ ∇log p(y|s) + λ_r (log p(y|s) − b) ∇log p(s) + λ_e ∇H[s]                ``hard_attention_loss``
===============  ==========================================================================  ========================

All are sums over the words of a caption (or the cells of a picture) and means over captions. Words (B,T) are ids, then
0 for the end, then -1 for padding, which counts for nothing. The penalty cannot reach 0: a caption of C words has C/L
to give to each of L cells, so it ends near L(1 − C/L)².

Deviations from the paper: b is the moving average of a word, which a caption pays as often as it has words. The
released code judges by the mean of the words, a tenth of it (``per_word``, ``reward_weight: 0.1``). A draw has no part
in the words before it: ``to_go`` judges it by those from it on, which has the same mean and less noise.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from saccade.losses.policy import rewards_to_go
from saccade.trace import CaptionOutput

ENTROPY_WEIGHT = 0.002  # λ_e of the released code


def word_log_likelihood(logits: Tensor, words: Tensor) -> Tensor:
    """The log p(y_t) of each word (B,T) under its logits (B,T,V), 0 for no word: (B,T)."""
    surprise = F.cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=-1, reduction="none")  # (BT,)
    return -surprise.reshape(words.shape)


def caption_cross_entropy(logits: Tensor, words: Tensor) -> Tensor:
    """−log p of whole captions with their ends, mean over captions: logits (B,T,V), words (B,T) → scalar."""
    return -word_log_likelihood(logits, words).sum() / words.shape[0]


def doubly_stochastic(weights: Tensor, words: Tensor) -> Tensor:
    """Σ_i (1 − Σ_t α_ti)², mean over captions: weights (B,T,h,w), words (B,T) → scalar."""
    is_word = (words >= 0)[..., None, None]  # (B,T,1,1)
    looked_at = (weights * is_word).sum(1)  # Σ_t α_ti: (B,h,w)
    return (1 - looked_at).square().sum() / words.shape[0]


def hard_attention_loss(
    output: CaptionOutput,
    words: Tensor,
    baseline: Tensor,
    *,
    reward_weight: float = 1.0,
    entropy_weight: float = ENTROPY_WEIGHT,
    per_word: bool = False,
    to_go: bool = False,
) -> dict[str, Tensor]:
    """Scalars by name: ``loss`` is minimised, the others are its parts and the mean reward of a word.

    With ``reward_weight`` 1, no entropy and not ``per_word``, its gradient is unbiased for that of −L.

    Args:
        output: in training.
        words: (B,T).
        baseline: b, the expected reward of a word; a scalar that does not depend on the draws.
        reward_weight: λ_r.
        entropy_weight: λ_e.
        per_word: whether the reward is the mean over words, not their sum.
        to_go: whether a draw is judged by the words from its own on.
    """
    is_word = words >= 0  # (B,T)
    log_likelihood = word_log_likelihood(output.logits, words)  # log p(y_t|s): (B,T)
    beyond = ((log_likelihood - baseline) * is_word).detach()  # what each word earned beyond b: (B,T)
    advantage = rewards_to_go(beyond, is_word) if to_go else beyond.sum(1, keepdim=True)  # (B,T) or (B,1)
    if per_word:
        advantage = advantage / is_word.sum(1, keepdim=True).clamp_min(1)
    drawn = is_word & ~output.expected.unsqueeze(1)  # an expectation has nothing to be judged for: (B,T)
    captions = words.shape[0]
    cross_entropy = -log_likelihood.sum() / captions
    policy = -(advantage * output.acts["word"].log_prob * drawn).sum() / captions
    entropy = (output.entropy * is_word).sum() / captions
    return {
        "loss": cross_entropy + reward_weight * policy - entropy_weight * entropy,
        "cross_entropy": cross_entropy,
        "policy_loss": policy,
        "entropy": entropy,
        "reward": log_likelihood.detach().sum() / is_word.sum().clamp_min(1),
    }
