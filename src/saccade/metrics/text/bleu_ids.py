"""BLEU-4 of single captions that are numbers of words, for a whole batch on its device: a reward in training.

BLEU is a score of many captions together (:mod:`.caption_bleu`); one caption alone often has no run of four words in
common with a reference, and would earn nothing for those of three. So precisions of two words and more are smoothed as
Lin and Och do ("ORANGE", COLING 2004): one is added to what matched and to what there was. The brevity penalty is that
of the closest reference, the shorter of two as close. The end is a word like others where it is given.

Axes: B pictures, K captions said of each, R references, T places for words, of which −1 holds none, G = 4 lengths of
n-grams.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.errors import ShapeError
from saccade.metrics.text.cider_ids import ngram_counts, ngram_keys


def bleu_of_words(said: Tensor, references: Tensor, vocabulary: int) -> Tensor:
    """Smoothed BLEU-4, 0..1, of captions (B,K,T) by the references (B,R,T') of their pictures: (B,K).

    A reference without a word counts for nothing; where a picture has no other, or a caption no word, it is 0.
    """
    if said.dim() != 3 or references.dim() != 3 or len(said) != len(references):
        raise ShapeError("references", f"({len(said)},R,T), beside captions (B,K,T)", references.shape)
    mine, theirs = (ngram_keys(words, vocabulary) for words in (said, references))  # (B,K,G,T), (B,R,G,T')
    in_each = (mine[:, :, None, ..., None] == theirs[:, None, ..., None, :]).sum(-1)  # (B,K,R,G,T)
    clipped = torch.minimum(ngram_counts(mine), in_each.amax(2))  # (B,K,G,T)
    matched, there = clipped.sum(-1).float(), (mine > 0).sum(-1).float()  # (B,K,G)
    one = (torch.arange(matched.shape[-1], device=said.device) > 0).float()  # (G,): 0 1 1 1
    precision = (matched + one) / (there + one).clamp_min(1)  # (B,K,G)
    return _brevity(there[..., 0], references) * precision.log().mean(-1).exp()


def _brevity(length: Tensor, references: Tensor) -> Tensor:
    """exp(min(0, 1 − r/c)) of captions of lengths c (B,K), r the closest length of the references (B,R,T'): (B,K)."""
    lengths = (references >= 0).sum(-1).float()  # (B,R)
    counts = (lengths > 0)[:, None]  # (B,1,R)
    # a quarter of a word more, and of two as close the shorter is the closer
    away = (lengths[:, None] - length[..., None] + 0.25).abs().masked_fill(~counts, torch.inf)  # (B,K,R)
    closest = lengths[:, None].expand_as(away).gather(-1, away.argmin(-1, keepdim=True)).squeeze(-1)  # (B,K)
    penalty = (1 - closest / length.clamp_min(1)).clamp(max=0).exp()
    return penalty * ((length > 0) & counts.any(-1))
