"""CIDEr-D: how much a caption says of what its references agree on.

Vedantam, Zitnick and Parikh, "CIDEr: Consensus-based Image Description Evaluation", CVPR 2015 (arXiv:1411.5726),
Section 6. A caption is four vectors, one for each length k = 1 … 4 of n-grams, with entries

    g_k(ω) = count of ω · log(pictures / pictures with ω in a reference)

and CIDEr-D is ten times the mean over references s and k of

    exp(−(l_c − l_s)² / 2σ²) · Σ_ω min(g_k(ω; c), g_k(ω; s)) · g_k(ω; s) / (‖g_k(c)‖ ‖g_k(s)‖),    σ = 6.

**Scale**: 0 to 10, as the reference evaluation counts it; papers print it times 100, like the other scores.

Document frequencies come from the references of the very set that is scored, so the score of a picture depends on the
others: a set of one picture scores 0, and scores of different sets do not compare. As in the reference evaluation the
length l is the number of bigrams, which for captions of one word or more is the number of words less one, and an n-gram
that no reference has counts as one that a single picture has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor

from saccade.metrics.text.words import NGram, Words, judged_captions, ngrams

ORDERS = 4
SIGMA = 6.0
SCALE = 10.0


def cider(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The mean of :func:`cider_each`, 0 to 10; NaN when there are no pictures."""
    return float(cider_each(hypotheses, references).mean())


def cider_each(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Tensor:
    """CIDEr-D of each picture, (B,) in 0..10, with document frequencies from all of ``references``.

    >>> said = ["a red seven stands here", "two white birds fly"]
    >>> cider_each(said, [(said[0],), (said[1], "one bird sits")]).tolist()
    [10.0, 5.0]
    """
    pictures = judged_captions(hypotheses, references)
    counted = [[_counts(words) for words in (picture.said, *picture.references)] for picture in pictures]
    rarity = _Rarity([known for _, *known in counted])
    scores = []
    for said, *known in counted:
        caption = _Vectors(said, rarity)
        scores.append(SCALE * sum(caption.likeness(_Vectors(counts, rarity)) for counts in known) / len(known))
    return torch.tensor(scores, dtype=torch.float64)


def _counts(words: Words) -> list[Counter[NGram]]:
    return [ngrams(words, order) for order in range(1, ORDERS + 1)]


class _Rarity(dict[NGram, float]):
    """log(pictures / pictures with the n-gram); for one that no reference has, log(pictures)."""

    def __init__(self, references: list[list[list[Counter[NGram]]]]) -> None:
        self.unseen = math.log(len(references)) if references else 0.0
        pictures = Counter(chain.from_iterable(set(chain(*chain(*known))) for known in references))
        super().__init__((ngram, self.unseen - math.log(count)) for ngram, count in pictures.items())

    def __missing__(self, ngram: NGram) -> float:
        return self.unseen


class _Vectors:
    """The four vectors of a caption, their lengths ‖g_k‖, and the length of the caption."""

    def __init__(self, counts: list[Counter[NGram]], rarity: _Rarity) -> None:
        self.entries = [{ngram: count * rarity[ngram] for ngram, count in order.items()} for order in counts]
        self.norms = [math.sqrt(sum(entry * entry for entry in order.values())) for order in self.entries]
        self.length = counts[1].total()

    def likeness(self, reference: _Vectors) -> float:
        """The clipped cosine, as a mean over the four lengths of n-grams, times the penalty on the length."""
        total = 0.0
        for order in range(ORDERS):
            norm = self.norms[order] * reference.norms[order]
            if norm:  # 0 where a caption is too short, or says only what is said of every picture
                mine, theirs = self.entries[order], reference.entries[order]
                shared = ((entry, theirs[ngram]) for ngram, entry in mine.items() if ngram in theirs)
                total += sum(min(entry, other) * other for entry, other in shared) / norm
        return total / ORDERS * math.exp(-((self.length - reference.length) ** 2) / (2 * SIGMA**2))
