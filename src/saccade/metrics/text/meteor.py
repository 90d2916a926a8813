"""meteor_lite: METEOR without its dictionaries, in plain Python.

Denkowski and Lavie, "Meteor Universal", WMT 2014. The words of a caption are paired with those of a reference
(:mod:`saccade.metrics.text.alignment`); with m pairs of weight M in ch chunks,

    P = M / words said    R = M / words of the reference    F = P R / (α P + (1 − α) R)
    score = F · (1 − γ (ch / m)^β)                           α = 0.85, β = 0.2, γ = 0.6

METEOR 1.5 also pairs synonyms and paraphrases from its own tables, and lets function words count less. Without them
this is another, lower number: **it never stands beside a published METEOR**; :func:`saccade.metrics.meteor_jar` does.
What it equals is METEOR 1.5 with ``-m 'exact stem' -w '1.0 0.6' -p '0.85 0.2 0.6 0.5' -x 2000``, but for two habits of
that program: its own beam of 40 misses the best pairing of some long captions, and of several words with one stem it
leaves some alone.

Each picture counts with the reference that fits best, the first of equals; the score of a set is that of the sums of
M, m, ch and lengths. Both are METEOR's way, as is that a caption which is word for word its reference has no chunks, so
that it scores 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from saccade.metrics.text.alignment import align
from saccade.metrics.text.words import Words, judged_captions

ALPHA, BETA, GAMMA = 0.85, 0.2, 0.6


class _Tally(NamedTuple):
    """What is added up over pictures."""

    said: int
    known: int
    weight: float
    pairs: int
    chunks: int

    def score(self) -> float:
        """The score of these sums; 0 where nothing is paired."""
        if not self.pairs:
            return 0.0
        precision, recall = self.weight / self.said, self.weight / self.known
        mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
        found: float = mean * (1 - GAMMA * (self.chunks / self.pairs) ** BETA)
        return found


def meteor_lite(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """METEOR by exact words and stems alone, a fraction 0..1; NaN when there are no pictures.

    >>> round(meteor_lite(["a dog runs"], [("a dog is running", "two birds")]), 4)
    0.3017
    """
    pictures = judged_captions(hypotheses, references)
    if not pictures:
        return float("nan")
    best = [max((_tally(said, words) for words in known), key=_Tally.score) for said, known in pictures]
    return _Tally(*map(sum, zip(*best))).score()


def _tally(said: Words, words: Words) -> _Tally:
    weight, pairs, chunks = align(said, words)
    whole = chunks == 1 and pairs == len(said) == len(words)
    return _Tally(len(said), len(words), weight, pairs, 0 if whole else chunks)
