"""The three example stories of the founding document, whose words ``words="wide"`` of the generator covers.

The third is incomplete. Its answer follows from sentences that the document leaves out, so nobody can answer it.
"""

from __future__ import annotations

from typing import NamedTuple

from saccade.families.story.stories import StoryExample


class FoundingStory(NamedTuple):
    """One example."""

    asked: StoryExample
    """With the document's own answer."""
    is_complete: bool
    """Whether the answer follows from the sentences."""


def _story(number: int, sentences: str, question: str, answer: str, supporting: tuple[int, ...] = ()) -> FoundingStory:
    told = tuple(f"{sentence.strip()}." for sentence in sentences.split(".") if sentence.strip())
    where = f"founding document, story {number}"
    return FoundingStory(StoryExample(told, question, answer, supporting, where=where), bool(supporting))


FOUNDING_STORIES = (
    _story(
        1,
        "Sam walks into the kitchen. Sam picks up an apple. Sam walks into the bedroom. Sam drops the apple.",
        "Where is the apple?",
        "bedroom",
        (3, 2),
    ),
    _story(
        2,
        "Brian is a lion. Julius is a lion. Julius is white. Bernhard is green.",
        "What color is Brian?",
        "white",
        (0, 1, 2),
    ),
    _story(
        3,
        "Mary journeyed to the den. Mary went back to the kitchen. John journeyed to the bedroom. "
        "Mary discarded the milk.",
        "Where was the milk before the den?",
        "hallway",
    ),
)
"""In the order of the document."""
