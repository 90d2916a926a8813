"""From logits to an answer in words: one entry of the vocabulary, or several words said one after the other."""

from __future__ import annotations

from torch import Tensor

from saccade.answer import Answer
from saccade.families.labels import ranked
from saccade.models.base import AttentionModel
from saccade.models.io.facts import ModelFacts
from saccade.trace import Output


def decode(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,V) or, said word by word, (B,A,V)."""
    shares = model.probabilities(output.logits.float()).cpu()  # (B,V) or (B,A,V)
    if shares.dim() == 2:
        return [ranked(each, facts.answers) for each in shares]
    return [_said(each, facts.answers) for each in shares]


def _said(shares: Tensor, words: tuple[str, ...]) -> Answer:
    """The words until the empty one; how sure is the product of their shares, the end included."""
    best = ranked(shares[0], words)
    chosen = shares.argmax(-1).tolist()  # (A,)
    end = chosen.index(0) if 0 in chosen else len(chosen)
    if end < 2:
        return best
    sure = float(shares[: end + 1].max(-1).values.prod())
    return Answer(",".join(words[number] for number in chosen[:end]), sure)
