"""Generates stories in the form of bAbI from a small world, and answers questions about such stories by rules."""

from __future__ import annotations

from collections.abc import Callable

from saccade.families.story.stories import StoryExample
from saccade.families.story.world.kinds import generate_colours, generate_fears, generate_shapes, generate_sizes
from saccade.families.story.world.lexicon import Draws, Words
from saccade.families.story.world.people import PLOTS, generate_people
from saccade.families.story.world.places import generate_beside, generate_motives, generate_way
from saccade.families.story.world.reader import answer_of, derive

TASKS = {
    1: "single supporting fact",
    2: "two supporting facts",
    3: "three supporting facts",
    4: "two-argument relations",
    5: "three-argument relations",
    6: "yes/no questions",
    7: "counting",
    8: "lists and sets",
    9: "simple negation",
    10: "indefinite knowledge",
    11: "basic coreference",
    12: "conjunction",
    13: "compound coreference",
    14: "time reasoning",
    15: "basic deduction",
    16: "basic induction",
    17: "positional reasoning",
    18: "size reasoning",
    19: "path finding",
    20: "agents' motivations",
}
"""Titles of the tasks, by number."""

_SMALL_WORLDS: dict[int, Callable[[Draws], list[StoryExample]]] = {
    4: generate_beside,
    15: generate_fears,
    16: generate_colours,
    17: generate_shapes,
    18: generate_sizes,
    19: generate_way,
    20: generate_motives,
}


def generate_story(task: int, seed: int, index: int, words: Words = "babi") -> list[StoryExample]:
    """One story with its questions.

    Args:
        task: 1–20.
        seed: 0 or more.
        index: which story, 0 or more.
        words: ``babi``, the official words; ``wide`` adds those of the founding document to tasks 1–3 and 5–14.

    Raises:
        DataError: there is no such task, story or choice of words.
    """
    draws = Draws(seed, task, index)
    asked = generate_people(task, draws, words) if task in PLOTS else _SMALL_WORLDS[task](draws)
    where = f"generated, seed {seed}, qa{task}, story {index}"
    return [StoryExample(one.sentences, one.question, one.answer, one.supporting, f"qa{task}", where) for one in asked]


__all__ = ["TASKS", "answer_of", "derive", "generate_story"]
