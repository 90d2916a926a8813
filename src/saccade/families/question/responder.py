"""What to know about answers of question models: the premise of a question, and maps no better than a blind rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from saccade.families.responder import Responder, Response
from saccade.models.base import Encoding, Given
from saccade.models.facts import ModelFacts

SCENES = ("mref", "mdist", "mbg")
"""Generated scenes, in which every question was about a digit that is there, unless ``absent`` is set."""


class QuestionResponder(Responder):
    """Answers questions about pictures, and knows what its model was never asked."""

    @staticmethod
    def premise(facts: ModelFacts) -> str:
        """A model that never learned from questions about absent digits cannot say that a digit is not there."""
        if facts.data.get("name") not in SCENES or facts.data.get("absent"):
            return ""
        return (
            "takes for granted that the digit asked for is in the picture: of one that is not there it names a colour "
            "all the same, at times with high confidence"
        )

    def respond(
        self, encoding: Encoding, queries: Sequence[Any], options: Mapping[str, Any], attention: Given | None = None
    ) -> list[Response]:
        """As of every model; a note says where maps of the question asked point no better than a blind rule.

        Weights that are given in place of the model's own are not judged by how its own maps were scored.
        """
        found = super().respond(encoding, queries, options, attention)
        told = {} if attention else blind_queries(self.facts)
        notes = [tuple(filter(None, [told.get(self.facts.queries[query])])) for query in queries] if told else None
        return [replace(each, notes=notes) for each in found] if notes else found


def blind_queries(facts: ModelFacts) -> dict[str, str]:
    """Query → one sentence, for each whose maps were not found to point better than the best map that never looks."""
    from saccade.metrics.verdict import BLIND  # many modules for one table

    told = {}
    for query, found in facts.scores[0].by_query().items() if facts.scores else ():
        if not found.is_better:
            guess = BLIND.get(found.chance, "a map that never looks")
            told[query] = (
                f"for '{query}' the map was not found to point better than {guess}: its peak was in the right "
                f"place for {100 * found.value:.0f} % of {found.n:,} test questions, that guess for "
                f"{100 * found.chance_value:.0f} %"
            )
    return told
