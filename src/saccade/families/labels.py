"""From logits to one label: the likeliest, followed by the others. The ``decode`` of a family that declares none."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from saccade.answer import Answer
from saccade.models.base import AttentionModel
from saccade.models.facts import ModelFacts
from saccade.trace import Output


def decode(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,K)."""
    raw = model.probabilities(output.logits.float()).cpu()  # (B,K)
    if facts.calibration is None:
        return [ranked(each, facts.answers) for each in raw]
    shares = model.probabilities(calibrated(output.logits, facts)).cpu()  # (B,K)
    return [with_raw(each, before, facts.answers) for each, before in zip(shares, raw)]


def calibrated(logits: Tensor, facts: ModelFacts) -> Tensor:
    """Logits (…,K) divided by the model's temperature, if it has one."""
    return logits.float() if facts.calibration is None else logits.float() / facts.calibration.temperature


def with_raw(shares: Tensor, raw: Tensor, words: Sequence[str]) -> Answer:
    """As :func:`ranked`, from calibrated probabilities (K,), with those before calibration beside them (K,).

    The order is that of ``raw``: calibration changes no answer, also where it makes two of them equal.
    """
    before = ranked(raw, words)
    order = raw.argsort(descending=True, stable=True).tolist()  # (K,)
    (best, share), *others = [(words[number], float(shares[number])) for number in order]
    told = (before.confidence, *(share for _, share in before.alternatives))
    return Answer(best, share, alternatives=tuple(others), raw=told)


def ranked(shares: Tensor, words: Sequence[str]) -> Answer:
    """The likeliest answer and the others, from the probability (K,) of each."""
    order = shares.argsort(descending=True, stable=True).tolist()  # (K,)
    (best, share), *others = [(words[number], float(shares[number])) for number in order]
    return Answer(best, share, alternatives=tuple(others))
