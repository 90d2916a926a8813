"""The premise of a question about a scene: the digit is there."""

from __future__ import annotations

from saccade.families.responder import Responder
from saccade.models.io.facts import ModelFacts

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
