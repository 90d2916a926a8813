"""Attention over the sentences of a memory: one hop of an end-to-end memory network, and how a sentence is encoded.

Paper: Sukhbaatar et al., "End-To-End Memory Networks", 2015 (arXiv:1503.08895).

===========  ==========================================================================================
Eq. (1)      p_i = softmax_i(uᵀ m_i)                          :func:`memory_hop`
Eq. (2)      o = Σ_i p_i c_i                                  :func:`memory_hop`
Section 4.1  m_i = Σ_j l_j ∘ A x_ij, word j of a sentence weighted by its place    :class:`SentenceCode`
Section 4.2  linear start: the softmax is left out            :func:`memory_hop`
===========  ==========================================================================================

The shipped models weight words as the authors' code does (``position-code``): for word j and dimension k of d,
l_kj = 1 + 4 (k − (d+1)/2) (j − (J+1)/2) / (d J), with J the words of the longest sentence. The formula of the paper
(``position``) is another one: l_kj = (1 − j/J) − (k/d)(1 − 2j/J), with J the words of the sentence itself.

Every position code here has the form l_kj = a_j + s_k b_j. So a sentence is two weighted bags of words, with weights a
and b, and m = [bag_a, bag_b] · [A; A·diag(s)]: one matrix product instead of a gather for each word. The bags do not
depend on A, so all hops and stacked restarts share them.

Deviations: the default of :class:`saccade.models.memn2n.MemN2NConfig` is the position encoding of the authors' code; an
empty slot can be masked, while in their code its score is 0.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from saccade.attention.scores import given_or_own
from saccade.errors import ConfigError, nearest
from saccade.trace import Act, LookSpec

Code = Literal["bag", "position", "position-code"]
"""How the words of a sentence are weighted: all alike, by the paper's formula, or by that of the authors' code."""
CODES: tuple[Code, ...] = ("bag", "position", "position-code")


class SentenceCode:
    """How sentences become vectors: l_kj = a_j + s_k b_j for word j and dimension k, both counted from 1.

    Args:
        code: ``bag`` a = 1, b = 0; ``position`` a = 1 − j/J, b = 2j/J − 1, s = k/d, with J the words of the sentence;
            ``position-code`` a = 1, b = (j − (J+1)/2)/J, s = 4(k − (d+1)/2)/d, with J the words of the longest.
        longest: J of ``position-code``.
    """

    def __init__(self, code: Code, longest: int) -> None:
        if code not in CODES:
            raise ConfigError(f"encoding '{code}': {nearest(code, CODES)}")
        self.code, self.longest = code, longest

    def bags(self, words: Tensor, vocabulary: int) -> Tensor:
        """Sentences of word ids (…,J), 0 where there is no word, as bags over the vocabulary: (…,V), or (…,2V)."""
        one_hot = torch.nn.functional.one_hot(words.long(), vocabulary).to(torch.get_default_dtype())  # (…,J,V)
        is_word = (words != 0).to(one_hot)  # (…,J)
        place = torch.arange(1, words.shape[-1] + 1, device=words.device).to(one_hot)  # (J,)
        if self.code == "bag":
            weights = is_word.unsqueeze(-2)  # (…,1,J)
        elif self.code == "position":
            share = place / is_word.sum(-1, keepdim=True).clamp(min=1)  # (…,J): j/J
            weights = torch.stack([1 - share, 2 * share - 1], -2) * is_word.unsqueeze(-2)  # (…,2,J)
        else:
            slope = (place - (self.longest + 1) / 2) / self.longest  # (J,)
            weights = torch.stack([torch.ones_like(slope), slope]) * is_word.unsqueeze(-2)  # (…,2,J)
        return (weights @ one_hot).flatten(-2)

    def matrix(self, embedding: Tensor, *below: Tensor) -> Tensor:
        """What bags are multiplied by: an embedding (V,d), under it the same times s, and the rows ``below``."""
        if self.code == "bag":
            return torch.cat([embedding, *below])
        d = embedding.shape[-1]
        first, last = (1 / d, 1.0) if self.code == "position" else (2 * (1 - d) / d, 2 * (d - 1) / d)  # s for k = 1, d
        slopes = torch.linspace(first, last, d, device=embedding.device, dtype=embedding.dtype)  # (d,)
        return torch.cat([embedding, embedding * slopes, *below])


HOP = LookSpec("slots", "multiplier", "softmax")
"""The look of a hop. Its softmax is in place: linear start is for training, and no trace is made of it."""


def memory_hop(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    present: Tensor | None = None,
    linear: bool = False,
    weights: Tensor | None = None,
) -> Act:
    """One look into the memory: context o = Σ p_i c_i (B,d), weights p and scores uᵀ m_i (B,S).

    Args:
        query: u (B,d).
        keys: m (B,S,d).
        values: c (B,S,d).
        present: (B,S) bool, slots that hold a sentence; the others get no weight. None: all slots take part.
        linear: leave the softmax out, as at the start of training: p = uᵀ m_i.
        weights: (B,S) in place of its own.
    """
    # Multiplied and summed, not as a product of matrices: these are so thin that their gradients, which are products of
    # a column and a row for each example, take ten times as long that way.
    scores = (keys * query.unsqueeze(1)).sum(-1)  # (B,S)
    if linear:
        computed = scores if present is None else scores * present
    elif present is None:
        computed = scores.softmax(-1)  # Eq. (1)
    else:
        computed = scores.masked_fill(~present, -torch.inf).softmax(-1)
        # an empty memory: no weight
        computed = torch.where(present.any(-1, keepdim=True), computed, torch.zeros_like(computed))
    used = given_or_own(weights, computed)
    return Act((values * used.unsqueeze(-1)).sum(1), used, scores, values)  # Eq. (2)
