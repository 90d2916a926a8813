"""From words to sentences: captions are found by a search, so one look may return several.

``decode`` puts given words into a sentence with the probability of each; :class:`CaptionResponder` searches for the
words first, by beam search, and asks the model once more for the probability of each word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from torch import Tensor

from saccade.answer import Answer
from saccade.errors import DataError
from saccade.families.answering import Responder, Response
from saccade.models.base import Given
from saccade.models.caption_decoding import Decoded
from saccade.models.facts import ModelFacts
from saccade.models.sat import SatModel
from saccade.trace import Output

BEAM = 5  # captions that are followed side by side while the best one is looked for


def decode(model: SatModel, output: Output, facts: ModelFacts) -> list[Answer]:
    """The sentence of each example, from logits (B,T,V) and the likeliest words (B,T)."""
    words = cast(Tensor, output.trace.answer)
    each = _log_probabilities(output.logits, words)  # (B,T)
    ends = (words == 0).int().argmax(1).where((words == 0).any(1), (words >= 0).sum(1))  # (B,): words before the end
    wholes = (each * (words >= 0).cpu()).sum(1)  # (B,)
    return [
        _sentence(said, shares, int(end), float(whole), facts.answers)
        for said, shares, end, whole in zip(words.tolist(), each, ends, wholes)
    ]


class CaptionResponder(Responder):
    """Searches for captions; options are ``beam``, ``captions`` and ``length_penalty``."""

    model: SatModel

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """How captions are searched for, in the words of ``SatModel.caption``."""
        told = super().options(given)
        several = told.get("captions", 1)
        width = told.get("beam", max(BEAM, several))
        if not 1 <= several <= width:
            raise DataError(f"captions are 1 or more and no more than the beam follows, found {several} of {width}")
        return {"width": width, "captions": several, "length_penalty": told.get("length_penalty", 0.0)}

    def respond(
        self, encoding: Tensor, queries: Sequence[Any], options: Mapping[str, Any], attention: Given | None = None
    ) -> list[Response]:
        """The captions that the search found, the best first."""
        given = {} if attention is None else {"attention": attention}
        decoded = self.model.caption(encoding, **options, **given)
        return [self._response(encoding, decoded, which, attention) for which in range(decoded.words.shape[1])]

    def _response(self, encoding: Tensor, decoded: Decoded, which: int, attention: Given | None) -> Response:
        """Caption number ``which`` of each picture."""
        words = decoded.words[:, which]  # (B,T)
        each = _log_probabilities(self.model.respond(encoding, words, attention=attention).logits, words)  # (B,T)
        lengths, wholes = decoded.lengths[:, which].tolist(), decoded.log_prob[:, which].tolist()
        answers = [
            _sentence(said, shares, length, whole, self.facts.answers)
            for said, shares, length, whole in zip(words.tolist(), each, lengths, wholes)
        ]
        trace = self.model.trace_of(decoded, which)
        return Response(answers, trace if attention is None else trace.mark_given(attention))


def _log_probabilities(logits: Tensor, words: Tensor) -> Tensor:
    """Log-probability (B,T) of each of the words (B,T), on the CPU."""
    return logits.double().log_softmax(-1).gather(-1, words.clamp(min=0)[..., None])[..., 0].cpu()


def _sentence(said: Sequence[int], log_shares: Tensor, length: int, whole: float, words: Sequence[str]) -> Answer:
    """One caption from its ids (T,), the log-probability of each (T,), how many are words, and that of the whole."""
    parts = tuple((words[said[step]], float(log_shares[step].exp())) for step in range(length))
    steps = sum(word >= 0 for word in said)  # the end among them, if it was said
    return Answer(
        " ".join(word for word, _ in parts),
        math.exp(whole / steps) if steps else 0.0,
        kind="sentence",
        parts=parts,
        log_probability=whole,
    )
