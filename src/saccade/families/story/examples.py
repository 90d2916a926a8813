"""Stories that the page offers to begin with, in the words of bAbI."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from saccade.families.story.stories import words_of


@dataclass(frozen=True)
class Example:
    """A story with a question."""

    title: str
    sentences: tuple[str, ...]
    question: str


EXAMPLES = (
    Example(
        "Where is somebody?",
        (
            "Mary moved to the bathroom.",
            "John went to the hallway.",
            "Daniel went back to the hallway.",
            "Sandra moved to the garden.",
            "John moved to the office.",
            "Sandra journeyed to the bathroom.",
        ),
        "Where is John?",
    ),
    Example(
        "Where is a thing?",
        (
            "Mary went to the kitchen.",
            "Mary got the football there.",
            "John went back to the garden.",
            "Mary travelled to the bedroom.",
            "John journeyed to the office.",
        ),
        "Where is the football?",
    ),
    Example(
        "Where was it before?",
        (
            "John took the apple there.",
            "John went to the office.",
            "John moved to the kitchen.",
            "John dropped the apple there.",
            "John travelled to the garden.",
        ),
        "Where was the apple before the kitchen?",
    ),
    Example(
        "Who gave it?",
        (
            "Bill travelled to the office.",
            "Bill picked up the football there.",
            "Bill gave the football to Fred.",
            "Fred handed the football to Jeff.",
        ),
        "Who gave the football to Fred?",
    ),
    Example(
        "Yes or no",
        (
            "Mary got the milk there.",
            "John moved to the bedroom.",
            "Mary went to the hallway.",
        ),
        "Is Mary in the hallway?",
    ),
    Example(
        "How many?",
        (
            "Daniel picked up the apple there.",
            "Daniel took the milk there.",
            "Daniel went to the bathroom.",
            "Daniel discarded the milk.",
        ),
        "How many objects is Daniel carrying?",
    ),
    Example(
        "What is it afraid of?",
        (
            "Mice are afraid of wolves.",
            "Gertrude is a mouse.",
            "Cats are afraid of sheep.",
            "Winona is a mouse.",
            "Sheep are afraid of wolves.",
            "Emily is a mouse.",
            "Jessica is a wolf.",
            "Wolves are afraid of cats.",
        ),
        "What is Gertrude afraid of?",
    ),
)


def examples(known: Collection[str]) -> list[Example]:
    """All examples, those first with the fewest words that are not among the ``known`` ones."""
    words = frozenset(known)
    return sorted(EXAMPLES, key=lambda each: len(_words(each) - words))


def _words(example: Example) -> set[str]:
    return {word for text in (*example.sentences, example.question) for word in words_of(text)}
