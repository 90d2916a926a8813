"""Example stories of the page: a few in the words of bAbI, and a generated one of each task."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from saccade.families.story.page.founding import FOUNDING_STORIES
from saccade.families.story.stories import words_of
from saccade.families.story.world import TASKS, generate_story

_LONGEST = 12
"""Sentences of a generated example, where its task has one that is so short."""


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
)


FOUNDING = tuple(
    Example(f"The founding document's story {number}", story.asked.sentences, story.asked.question)
    for number, story in enumerate(FOUNDING_STORIES, start=1)
    if story.is_complete
)
"""Some of their words are not in bAbI: a model of generated stories with ``words: wide`` knows them."""


def examples(known: Collection[str]) -> list[Example]:
    """All examples, those first with the fewest words that are not among the ``known`` ones."""
    words = frozenset(known)
    return sorted([*EXAMPLES, *FOUNDING, *map(generated, TASKS)], key=lambda each: len(_words(each) - words))


def generated(task: int) -> Example:
    """A generated story: the longest of its questions that is no longer than an example."""
    asked = generate_story(task, 0, 2)  # among those that models are tested on
    chosen = [each for each in asked if len(each.sentences) <= _LONGEST][-1:] or asked[:1]
    return Example(f"{task}: {TASKS[task]}", chosen[0].sentences, chosen[0].question)


def _words(example: Example) -> set[str]:
    return {word for text in (*example.sentences, example.question) for word in words_of(text)}
