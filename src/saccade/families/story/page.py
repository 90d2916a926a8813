"""Stories in the live page: the examples of its editor, and the weights of MemN2N, which it can run.

Three examples are those of the founding document, whose words ``words="wide"`` of the generator covers.

The third is incomplete. Its answer follows from sentences that the document leaves out, so nobody can answer it.

The page's side of it lies in ``js``: ``panel.js`` is the editor, ``runtime.js`` computes MemN2N. A DMN needs ``saccade
serve``.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import torch

from saccade.config import to_dict
from saccade.errors import ConfigError
from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.text import CHARACTERS, SENTENCES
from saccade.families.story.world import TASKS, generate_story
from saccade.models.facts import ModelFacts
from saccade.models.memn2n import MemN2NModel
from saccade.predict import Predictor
from saccade.web.weights import matrix, page_facts


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


def panel_facts(facts: ModelFacts) -> dict[str, object]:
    """What the editor must know of a model: the limits of a story, and stories to begin with."""
    return {
        "sentences": SENTENCES,
        "characters": CHARACTERS,
        "examples": [to_dict(each) for each in examples(facts.answers)],
    }


def page_model(predictor: Predictor) -> dict[str, object]:
    """The facts and weights of ``predictor``'s model as plain values, which ``network`` of the runtime takes.

    Raises:
        ConfigError: for a model that the runtime cannot compute.
    """
    model = predictor.model
    if not isinstance(model, MemN2NModel):
        raise ConfigError(
            f"'{predictor.name}' ({predictor.facts.architecture}) does not run inside a page; memn2n does, "
            "any other model runs behind 'saccade serve'"
        )
    model = copy.deepcopy(model).cpu().float().requires_grad_(False)
    nothing = torch.zeros(1, model.config.memory, 1, dtype=torch.long)  # (B,S,J)
    trace = model(nothing, nothing[:, 0]).trace
    is_layerwise = model.config.tying == "layerwise"
    layers = {
        "config": to_dict(model.config),
        "embed": [matrix(table, exact=True) for table in model.embed],
        "time": [matrix(table, exact=True) for table in model.time],
        "carry": matrix(model.carry, exact=True) if is_layerwise else None,
        "output": matrix(model.output, exact=True) if is_layerwise else None,
    }
    return {**page_facts(predictor, "memn2n", trace), "layers": layers}
