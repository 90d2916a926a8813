"""Maps of the words of a caption: whether a word depends on what its map marks, and follows what is changed.

**Evidence of a word.** The caption y_1 … y_T that a model wrote about picture I is fed word by word, also of altered
pictures, so that only the pixels change. R_u are the pixels of the highest tenth of the map of word u, and I∖R is the
picture with the pixels R replaced, by a blur or by the same place of another picture:

=======  ====================================================================================  =====================
Eq. (1)  D[u,t] = log p(y_t | I, y_<t) - log p(y_t | I∖R_u, y_<t)
Eq. (2)  evidence of t = D[t,t] - mean of D[u,t] over the other words u of its kind            :func:`own_and_other`
Eq. (3)  distance of t = mean of TV(a_t, a_u) over the same words u                            :func:`map_distances`
=======  ====================================================================================  =====================

A picture with a hole makes every word less likely, so (2) subtracts what other words' maps do to the same word. It is
above 0 only where a map marks what its own word needs; maps that are the same for every word, and maps of noise on
average, have 0. "Other words" are of the same kind (content or function words) and other than y_t itself.
Log-probabilities are natural, so scores are in nats.

**Following.** One object of a scene is recoloured and captioned again: the one word should change to the new
colour and every other word stay. Captions are ids (B,T): words, then 0 for the end; what comes after the end does not
count.

Axes: B pictures, T words, N words of one kind, V words that can be said, H and W pixels, h and w cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.metrics.labels import correct
from saccade.metrics.maps.faithfulness import pixel_ranks
from saccade.metrics.maps.localisation import total_variation


def words_among(words: Tensor, kinds: Mapping[str, Iterable[int]]) -> dict[str, Tensor]:
    """Which of the word ids (B,T) belong to each kind, (B,T) bool.

    >>> words_among(torch.tensor([[5, 9, 0]]), {"colour": [9, 8]})["colour"].tolist()
    [[False, True, False]]
    """
    ids = {kind: torch.tensor(list(members), dtype=words.dtype, device=words.device) for kind, members in kinds.items()}
    return {kind: torch.isin(words, members) for kind, members in ids.items()}


TOP = 0.1  # The share of a picture's pixels that is altered


def marked(maps: Tensor) -> Tensor:
    """The highest tenth of the pixels of each map (N,H,W), bool; ties by a fixed hash."""
    return pixel_ranks(maps) < round(TOP * maps.shape[1] * maps.shape[2])


def word_log_probabilities(logits: Tensor, words: Tensor) -> Tensor:
    """Log-probability (B,T) of each word (B,T) by its logits (B,T,V); 0 for no word (-1)."""
    log_probabilities = logits.float().log_softmax(-1).gather(2, words.clamp(min=0)[..., None])[..., 0]  # (B,T)
    return log_probabilities * (words >= 0)


def own_and_other(drops: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """D[t,t] and the mean of D[u,t] over other words u, (N,) each; the latter is NaN where there is none.

    >>> own, other = own_and_other(torch.tensor([[2.0, 0.5], [1.0, 3.0]]), torch.tensor([7, 8]))
    >>> own.tolist(), other.tolist()
    ([2.0, 3.0], [1.0, 0.5])

    Args:
        drops: (N,N) D[u,t] between the N words of one kind in one caption.
        words: (N,) their ids; a word that is there twice is not another one.
    """
    return drops.diagonal(), _mean_over_others(drops, words)


def map_distances(weights: Tensor, words: Tensor) -> Tensor:
    """Eq. (3) for the maps (N,h,w) of the words (N,) of one caption: (N,), NaN if there is no other word."""
    count = len(words)
    first, second = (index.flatten() for index in torch.meshgrid(*[torch.arange(count)] * 2, indexing="ij"))  # (N²,)
    apart = total_variation(weights[first], weights[second]) if count else weights.new_zeros(0)  # (N²,)
    return _mean_over_others(apart.reshape(count, count).to(weights.device), words)


def _mean_over_others(values: Tensor, words: Tensor) -> Tensor:
    """The mean of column t over the rows u with another word: (N,)."""
    others = words[:, None] != words  # (N,N)
    total = torch.where(others, values.double(), 0.0).sum(0)  # (N,)
    return torch.where(others.any(0), total / others.sum(0), torch.nan)


_END = 0
_NOTHING = -1  # at every place from the end on


class WordFollow(NamedTuple):
    """1 or 0 for each caption (B,)."""

    causal_follow: Tensor  # The word followed and the rest held
    followed: Tensor  # The word is now the new one
    rest_stays: Tensor  # Every other word is as before, and the caption as long


def word_follow(before: Tensor, after: Tensor, *, place: Tensor, new_word: Tensor) -> WordFollow:
    """Compare captions (B,T) of scenes with those (B,T') after one object was recoloured.

    ``place`` (B,) is the place of the changed word in the caption, ``new_word`` (B,) what is true there now.
    """
    place = place.to(before.device)
    reach = int(place.max()) + 1 if len(place) else 0  # a caption may end before the place
    before, after = _until_end(before, after, at_least=reach)  # (B,W) each
    at = place.unsqueeze(1)  # (B,1)
    followed = correct(after.gather(1, at).squeeze(1), new_word)  # (B,)
    same = (before == after).scatter(1, at, torch.ones_like(at, dtype=torch.bool))  # (B,W): the place itself may differ
    stays = same.all(1).float()  # (B,)
    return WordFollow(followed * stays, followed, stays)


def same_caption(captions: Tensor, truth: Tensor) -> Tensor:
    """1.0 where two captions, ids (B,T) and (B,T'), have the same words, else 0.0: (B,).

    >>> same_caption(torch.tensor([[4, 7, 0], [4, 7, 5]]), torch.tensor([[4, 7, 0, -1], [4, 7, 0, -1]])).tolist()
    [1.0, 0.0]
    """
    captions, truth = _until_end(captions, truth)
    return (captions == truth).all(1).float()


def _until_end(*captions: Tensor, at_least: int = 0) -> list[Tensor]:
    """Captions (B,W) of one width, at least ``at_least``, on one device, blank from the end on."""
    first = captions[0]
    width = max(at_least, *(words.shape[1] for words in captions))
    wide = [F.pad(words.to(first.device), (0, width - words.shape[1]), value=_NOTHING) for words in captions]
    return [torch.where((words <= _END).cumsum(1) > 0, _NOTHING, words) for words in wide]
