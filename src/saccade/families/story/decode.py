"""From logits to an answer in words: one entry of the vocabulary, or several words said one after the other."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from saccade.answer import Answer
from saccade.families.labels import calibrated, ranked, with_raw
from saccade.models.base import AttentionModel
from saccade.models.io.facts import ModelFacts
from saccade.trace import Output

NOTHING = "(no word)"
"""The empty word, which a model that has not learned enough may answer."""
_OTHERS = 9  # alternatives that are told: the answer may be any word of the vocabulary


def decode(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,V) or, said word by word, (B,A,V)."""
    words = tuple(word or NOTHING for word in facts.answers)
    shares = model.probabilities(output.logits.float()).cpu()  # (B,V) or (B,A,V)
    if shares.dim() == 2 and facts.calibration is not None:
        sure = model.probabilities(calibrated(output.logits, facts)).cpu()  # (B,V)
        return [_first(with_raw(each, raw, words)) for each, raw in zip(sure, shares)]
    return [_one(each, words) if each.dim() == 1 else _said(each, words) for each in shares]


def _one(shares: Tensor, words: tuple[str, ...]) -> Answer:
    """The likeliest entry, and a few others."""
    return _first(ranked(shares, words))


def _first(found: Answer) -> Answer:
    """The answer with its first few alternatives."""
    return replace(found, alternatives=found.alternatives[:_OTHERS], raw=found.raw[: _OTHERS + 1])


def _said(shares: Tensor, words: tuple[str, ...]) -> Answer:
    """The words before the empty one. Confidence is the product of their probabilities, end included.

    For one word, confidence is that word's probability; the other words are its alternatives.
    """
    chosen = shares.argmax(-1).tolist()  # (A,)
    end = chosen.index(0) if 0 in chosen else len(chosen)
    if end < 2:
        return _one(shares[0], words)
    sure = float(shares[: end + 1].max(-1).values.prod())
    return Answer(",".join(words[number] for number in chosen[:end]), sure)
