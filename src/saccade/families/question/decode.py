"""From logits to an answer: the likeliest label, and the others behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from saccade.answer import Answer
from saccade.errors import DataError
from saccade.models.base import QueryModel
from saccade.models.io.facts import ModelFacts
from saccade.trace import Output

if TYPE_CHECKING:
    from saccade.predict import Predictor


def decode(model: QueryModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The answer to each example, from logits (B,K)."""
    shares = model.probabilities(output.logits.float()).cpu()  # (B,K)
    return [ranked(each, facts.answers) for each in shares]


def query_model(predictor: Predictor) -> QueryModel:
    """The network of ``predictor``; a DataError if it takes no question."""
    model = predictor.model
    if not isinstance(model, QueryModel):
        raise DataError(f"'{predictor.name}' takes no question ({type(model).__name__}); name a model that does")
    return model


def ranked(shares: Tensor, words: Sequence[str]) -> Answer:
    """The likeliest answer and the others, from the probability (K,) of each."""
    order = shares.argsort(descending=True, stable=True).tolist()  # (K,)
    (best, share), *others = [(words[number], float(shares[number])) for number in order]
    return Answer(best, share, alternatives=tuple(others))
