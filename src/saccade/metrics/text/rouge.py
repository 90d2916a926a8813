"""ROUGE-L: how long a subsequence a caption shares with its references.

Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, as the reference evaluation of captions has it:
precision and recall are the longest common subsequence over the length of the caption and of the reference, each
maximised over the references by itself, and F = (1 + β²) P R / (R + β² P) with β = 1.2. The score of a set is the mean
over its pictures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.metrics.text.words import Judged, Words, judged_captions

BETA = 1.2


def rouge_l(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The mean of :func:`rouge_l_each`; NaN when there are no pictures."""
    return float(rouge_l_each(hypotheses, references).mean())


def rouge_l_each(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Tensor:
    """ROUGE-L of each picture, (B,) in 0..1.

    >>> rouge_l_each(["a dog runs fast", ""], [("a dog runs fast", "a cat"), ("a cat",)]).tolist()
    [1.0, 0.0]
    """
    scores = [_score(picture) for picture in judged_captions(hypotheses, references)]
    return torch.tensor(scores, dtype=torch.float64)


def _score(picture: Judged) -> float:
    if not picture.said:
        return 0.0
    shared = _longest_common(picture.said, picture.references)
    precision = max(shared) / len(picture.said)
    recall = max(length / len(words) for length, words in zip(shared, picture.references))
    if not precision:  # nothing is shared, so recall is 0 as well
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def _longest_common(said: Words, references: list[Words]) -> list[int]:
    """The length of the longest common subsequence with each reference.

    One row of the usual table is one whole number (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): bit i
    is 0 where the row grows at word i of ``said``, so the zeros count the length, and a word of the reference costs one
    addition instead of a loop.
    """
    places: defaultdict[str, int] = defaultdict(int)
    for place, word in enumerate(said):
        places[word] |= 1 << place
    everywhere = (1 << len(said)) - 1
    lengths = []
    for words in references:
        row = everywhere
        for word in words:
            shared = row & places.get(word, 0)
            row = (row + shared) | (row - shared)
        lengths.append(len(said) - (row & everywhere).bit_count())
    return lengths
