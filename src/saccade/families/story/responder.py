"""Questions in free text: their words as ids, and the words that a model does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from saccade.answer import Answer
from saccade.errors import DataError
from saccade.families.responder import Asks, Question, Responder, Response, calibrated, ranked, with_raw
from saccade.families.story.reading import MAX_WORDS, known_and_unknown, numbers_of, unknown_note
from saccade.models.base import AttentionModel, Encoding, Given
from saccade.models.facts import ModelFacts
from saccade.trace import Output


@dataclass(frozen=True)
class StoryQuestion:
    """A question in words, and their ids."""

    text: str
    ids: tuple[int, ...]
    unknown: tuple[str, ...] = ()


class StoryResponder(Responder):
    """Answers any question that has a word which the model knows."""

    @staticmethod
    def query_kind(facts: ModelFacts) -> Asks:
        """Any text."""
        return "text"

    def query(self, ask: Question | None) -> StoryQuestion:
        """The question as word ids."""
        if not isinstance(ask, str) or not ask.strip():
            found = "none was given" if ask is None else f"found {ask!r}"
            raise DataError(f"'{self.name}' needs a question in words, as in \"Where is Mary?\"; {found}")
        known, unknown = known_and_unknown(ask, numbers_of(self.facts))
        if len(known) + len(unknown) > MAX_WORDS:
            raise DataError(
                f"the question has {len(known) + len(unknown):,} words, and at most {MAX_WORDS} are allowed"
            )
        if not known:
            raise DataError(
                f"'{self.name}' knows none of the words of the question '{ask.strip()}'; its card lists those it knows"
            )
        return StoryQuestion(ask.strip(), known, unknown)

    def query_text(self, query: Any) -> str | None:
        """The question as it was put."""
        return str(query.text)

    def queries(self) -> list[Any]:
        """There is no list of questions."""
        return []

    def as_tensor(self, queries: Sequence[Any]) -> Tensor:
        """Word ids (B,Q), 0 after the last word."""
        longest = max(len(query.ids) for query in queries)
        padded = [[*query.ids, *[0] * (longest - len(query.ids))] for query in queries]
        return torch.tensor(padded, device=self.device)

    def respond(
        self, encoding: Encoding, queries: Sequence[Any], options: Mapping[str, Any], attention: Given | None = None
    ) -> list[Response]:
        """Answers, with the unknown words of each question in the notes."""
        notes = [unknown_note("question", query.unknown) for query in queries]
        return [replace(each, notes=notes) for each in super().respond(encoding, queries, options, attention)]

    def examples(self, count: int, seed: int) -> dict[str, Tensor]:
        """Questions of random words (B,Q), one to Q words each."""
        generator = torch.Generator().manual_seed(seed)
        longest = 2 + seed % 4
        words = torch.randint(1, len(self.facts.answers), (count, longest), generator=generator)  # (B,Q)
        length = torch.randint(1, longest + 1, (count, 1), generator=generator)
        return {"query": words * (torch.arange(longest) < length)}

    def free_sizes(self) -> dict[str, dict[int, str]]:
        """A question may have any number of words."""
        return {"query": {1: "question_words"}}


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
