"""Does a word of a caption depend on what its map marks? Change that part of the picture and ask for the word again.

The caption y_1 … y_T that a model said of picture I is given word by word, also of altered pictures, so that only the
pixels change. R_u are the pixels of the highest tenth of the map of word u, and I∖R is the picture with the pixels R
replaced by a fill:

=======  ====================================================================================  =====================
Eq. (1)  D[u,t] = log p(y_t | I, y_<t) - log p(y_t | I∖R_u, y_<t)                              :func:`log_drops`
Eq. (2)  evidence of t = D[t,t] - mean of D[u,t] over the other words u of its kind            :func:`own_and_other`
Eq. (3)  distance of t = mean of TV(a_t, a_u) over the same words u                            :func:`map_distances`
=======  ====================================================================================  =====================

D[t,t] alone is no evidence for a map: a picture with a hole makes every word less likely. So (2) subtracts what other
words' maps do to the same word. It is above 0 only where a map marks what its own word needs. Maps that are the same
for every word, and maps of noise on average, have 0. "Other words" are of the same kind (content or function words)
and other than y_t itself.

There are two fills, as a blur leaves colours and a foreign patch brings in things of its own: ``blur`` and ``patch``,
the same place of another picture. Log-probabilities are natural, so scores are in nats.

Axes: B pictures, R altered copies, T words, V words that can be said, H and W pixels, h and w cells.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.errors import ConfigError, ShapeError
from saccade.metrics.maps.faithfulness import pixel_ranks
from saccade.metrics.maps.mass import total_variation

TOP = 0.1
"""The share of a picture's pixels that is altered."""


def marked(maps: Tensor, share: float = TOP) -> Tensor:
    """The pixels (N,H,W) bool of the highest ``share`` of each map (N,H,W); ties by a fixed hash of their place."""
    if not 0 < share < 1:
        raise ConfigError(f"share: must lie between 0 and 1, found {share}")
    return pixel_ranks(maps) < round(share * maps.shape[1] * maps.shape[2])


def word_log_probabilities(logits: Tensor, words: Tensor) -> Tensor:
    """Log-probability (B,T) of each word (B,T) by its logits (B,T,V); 0 where there is none (-1)."""
    if logits.shape[:2] != words.shape:
        raise ShapeError("logits", f"{(*words.shape, 'V')}, a row for each word", logits.shape)
    found = logits.float().log_softmax(-1).gather(2, words.clamp(min=0)[..., None])[..., 0]  # (B,T)
    return found * (words >= 0)


def log_drops(before: Tensor, after: Tensor) -> Tensor:
    """Eq. (1): of the words' log p before (T,) and of altered pictures (R,T), how much each of these took: (R,T)."""
    if after.dim() != 2 or before.shape != after.shape[1:]:
        raise ShapeError("log p before", f"({after.shape[-1]},), one for each word", before.shape)
    return before - after


def own_and_other(drops: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """D[t,t] and the mean of D[u,t] over other words u, (N,) each; the latter is NaN where no other word is.

    >>> own, other = own_and_other(torch.tensor([[2.0, 0.5], [1.0, 3.0]]), torch.tensor([7, 8]))
    >>> own.tolist(), other.tolist()
    ([2.0, 3.0], [1.0, 0.5])

    Args:
        drops: (N,N) D[u,t] between the N words of one kind in one caption.
        words: (N,) their ids; a word that is there twice is not another one.
    """
    others = _others(words)  # (N,N)
    if drops.shape != others.shape:
        raise ShapeError("drops", f"{tuple(others.shape)}, between all words", drops.shape)
    return drops.diagonal(), _mean_over(drops, others)


def map_distances(weights: Tensor, words: Tensor) -> Tensor:
    """Eq. (3) for the maps (N,h,w) of the words (N,) of one caption: (N,), NaN where no other word is."""
    count = len(words)
    if weights.dim() != 3 or len(weights) != count:
        raise ShapeError("weights", f"({count},h,w), a map for each word", weights.shape)
    first, second = (each.flatten() for each in torch.meshgrid(*[torch.arange(count)] * 2, indexing="ij"))  # (N²,)
    apart = total_variation(weights[first], weights[second]) if count else weights.new_zeros(0)  # (N²,)
    return _mean_over(apart.reshape(count, count).to(weights.device), _others(words))


def _others(words: Tensor) -> Tensor:
    """[u,t]: whether word u is another one than word t, (N,N)."""
    return words[:, None] != words


def _mean_over(values: Tensor, others: Tensor) -> Tensor:
    """The mean of column t over the rows u that are others: (N,)."""
    total = torch.where(others, values.double(), 0.0).sum(0)  # (N,)
    return torch.where(others.any(0), total / others.sum(0), torch.nan)
