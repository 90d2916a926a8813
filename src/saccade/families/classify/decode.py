"""From logits to one label; of a model that zooms also what each scale says by itself."""

from __future__ import annotations

from dataclasses import replace

from saccade.answer import Answer
from saccade.families.labels import decode as decode_labels
from saccade.models.base import AttentionModel
from saccade.models.io.facts import ModelFacts
from saccade.models.racnn import SCALES
from saccade.trace import Output


def decode(model: AttentionModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,K) and, where there are scales, ``scale_logits`` (B,S,K)."""
    answers = decode_labels(model, output, facts)
    if "scale_logits" not in output.aux:
        return answers
    best = model.probabilities(output.aux["scale_logits"].float()).cpu().max(-1)  # (B,S) shares and numbers
    rows = zip(best.values.tolist(), best.indices.tolist())
    told = [
        tuple((name, facts.answers[number], share) for name, share, number in zip(SCALES, shares, numbers))
        for shares, numbers in rows
    ]
    return [replace(answer, on_the_way=way) for answer, way in zip(answers, told)]
