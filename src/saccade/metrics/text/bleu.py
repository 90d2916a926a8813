"""BLEU-1 to BLEU-4 of a whole set of captions, with and without the brevity penalty.

Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL 2002. Everything is pooled over
pictures before anything is divided:

    p_k = Σ matched k-grams / Σ k-grams said        matched: no more often than in the reference that has it most often
    BLEU-n = BP · (p_1 ⋯ p_n)^(1/n)                 BP = min(1, exp(1 − r / c))

with c words said and r words in the references, for each picture that nearest in length (the shorter of two). Show,
Attend and Tell prints its BLEU without BP, the reference evaluation has it with BP: both are here, and the length ratio
c / r says how much lies between them. Without BP a caption gains by being short.

Deviation: the reference evaluation adds 1e-15 and 1e-9 to counts, so that a set without one matching 4-gram has a
BLEU-4 near 1e-4 there. Here it is 0, and so is a BLEU-n when no caption said has n words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.metrics.intervals import SHARE, Interval, jackknife_interval
from saccade.metrics.text.words import Judged, NGram, judged_captions, ngrams

ORDERS = 4
NAMES = (
    *(f"bleu_{order}" for order in range(1, ORDERS + 1)),
    *(f"bleu_{order}_nobp" for order in range(1, ORDERS + 1)),
    "length_ratio",
)


def bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """``bleu_1`` … ``bleu_4``, the same without brevity penalty (``bleu_1_nobp`` …), and ``length_ratio``.

    NaN when there are no pictures.

    >>> found = bleu(["a small red seven"], [("a small red seven above a two",)])
    >>> found["bleu_4_nobp"], round(found["bleu_4"], 4), round(found["length_ratio"], 4)
    (1.0, 0.4724, 0.5714)
    """
    totals = _tallies(hypotheses, references).sum(0, keepdim=True)  # (1,2+2K)
    return dict(zip(NAMES, _scores(totals)[0].tolist()))


def bleu_intervals(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    level: float = 0.95,
) -> dict[str, Interval]:
    """The scores of :func:`bleu` with intervals, from leaving out one picture at a time; ``length_ratio`` has no ends.

    See :mod:`saccade.metrics.intervals`.
    """
    tallies = _tallies(hypotheses, references)  # (B,2+2K)
    pooled, pictures = tallies.sum(0, keepdim=True), len(tallies)
    found = _scores(pooled)[0]  # (9,)
    without = _scores(pooled - tallies)  # (B,9)
    intervals = {}
    for name, score, others in zip(NAMES, found, without.T):
        low, high = jackknife_interval(score, others, ends=None if name == "length_ratio" else SHARE, level=level)
        intervals[name] = Interval(float(score), float(low), float(high), pictures, pictures, 0)
    return intervals


def _tallies(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Tensor:
    """For each picture: words said, words of the nearest reference, k-grams matched and k-grams said, (B,2+2K)."""
    rows = [_tally(picture) for picture in judged_captions(hypotheses, references)]
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, 2 + 2 * ORDERS)  # (B,2+2K), also for B = 0


def _tally(picture: Judged) -> list[int]:
    length = len(picture.said)
    nearest = min((abs(len(words) - length), len(words)) for words in picture.references)[1]
    matched, possible = [], []
    for order in range(1, ORDERS + 1):
        most: Counter[NGram] = Counter()
        for words in picture.references:
            most |= ngrams(words, order)  # union of counters: the larger count of each
        matched.append((ngrams(picture.said, order) & most).total())
        possible.append(max(0, length - order + 1))
    return [length, nearest, *matched, *possible]


def _scores(totals: Tensor) -> Tensor:
    """The scores (N,9) in the order of ``NAMES``, from N pooled tallies (N,2+2K)."""
    said, known = totals[:, 0:1], totals[:, 1:2]  # (N,1): c and r
    matched, possible = totals[:, 2:].chunk(2, dim=1)  # (N,K)
    precision = matched / possible.clamp(min=1)  # (N,K): p_k, 0 where no k-gram was said
    orders = torch.arange(1, ORDERS + 1, dtype=totals.dtype)
    geometric = (precision.log().cumsum(1) / orders).exp()  # (N,K): log 0 = −∞, and exp of it is 0 again
    brevity = (1 - known / said).clamp(max=0).exp()  # (N,1): BP, 0 where nothing was said
    scores = torch.cat([brevity * geometric, geometric, said / known], dim=1)  # (N,2K+1)
    return torch.where(known > 0, scores, torch.nan)
