"""From logits to one label: the likeliest, and the others behind it. The ``decode`` of a family that declares none."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from saccade.answer import Answer
from saccade.models.base import AttentionModel
from saccade.models.io.facts import ModelFacts
from saccade.trace import Output


def decode(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,K)."""
    shares = model.probabilities(output.logits.float()).cpu()  # (B,K)
    return [ranked(each, facts.answers) for each in shares]


def ranked(shares: Tensor, words: Sequence[str]) -> Answer:
    """The likeliest answer and the others, from the probability (K,) of each."""
    order = shares.argsort(descending=True, stable=True).tolist()  # (K,)
    (best, share), *others = [(words[number], float(shares[number])) for number in order]
    return Answer(best, share, alternatives=tuple(others))
