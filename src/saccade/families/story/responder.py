"""Questions in free text: their words as ids, and the words that a model does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from saccade.errors import DataError
from saccade.families.responder import Asks, Question, Responder
from saccade.families.story.stories import words_of
from saccade.models.io.facts import ModelFacts


@dataclass(frozen=True)
class StoryQuestion:
    """A question in words, and their ids."""

    text: str
    ids: tuple[int, ...]
    unknown: tuple[str, ...] = ()


class StoryResponder(Responder):
    """Answers any question that is made of words the model knows."""

    @staticmethod
    def asks(facts: ModelFacts) -> Asks:
        """Any text."""
        return "text"

    def query(self, ask: Question | None) -> StoryQuestion:
        """The question as word ids."""
        if not isinstance(ask, str) or not ask.strip():
            raise DataError(f"'{self.name}' needs a question in words, as in \"Where is Mary?\"; found {ask!r}")
        numbers = {word: number for number, word in enumerate(self.facts.answers)}
        words = words_of(ask)
        ids = tuple(numbers[word] for word in words if word in numbers)
        unknown = tuple(word for word in words if word not in numbers)
        if not ids:
            raise DataError(f"'{self.name}' knows none of the words of '{ask}'; see its vocabulary in its card")
        return StoryQuestion(ask.strip(), ids, unknown)

    def asked(self, query: Any) -> str | None:
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
