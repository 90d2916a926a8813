"""Stories in the live page: the examples of its editor, and the weights of MemN2N, which it can run.

The page's side of it lies in ``js``: ``panel.js`` is the editor, ``runtime.js`` computes MemN2N. A DMN needs ``saccade
serve``.
"""

from __future__ import annotations

import copy
from collections.abc import Collection

import torch
from torch import nn

from saccade.config import to_dict
from saccade.errors import ConfigError
from saccade.families.page import PageModel, matrix
from saccade.families.story.reading import CHARACTERS, SENTENCES
from saccade.families.story.stories import StoryExample, cut_sentences, words_of
from saccade.families.story.world import TASKS, generate_story
from saccade.models.facts import ModelFacts
from saccade.models.memn2n import MemN2NModel

_LONGEST = 12  # Most sentences of a generated example, if its task has such a short one


# The last two use words outside bAbI, which models of ``words: wide`` know.
_STORIES = {
    "Where is somebody?": "Mary moved to the bathroom. John went to the hallway. Daniel went back to the hallway. "
    "Sandra moved to the garden. John moved to the office. Sandra journeyed to the bathroom. Where is John?",
    "Where is a thing?": "Mary went to the kitchen. Mary got the football there. John went back to the garden. "
    "Mary travelled to the bedroom. John journeyed to the office. Where is the football?",
    "Where was it before?": "John took the apple there. John went to the office. John moved to the kitchen. "
    "John dropped the apple there. John travelled to the garden. Where was the apple before the kitchen?",
    "The founding document's story 1": "Sam walks into the kitchen. Sam picks up an apple. Sam walks into the bedroom. "
    "Sam drops the apple. Where is the apple?",
    "The founding document's story 2": "Brian is a lion. Julius is a lion. Julius is white. Bernhard is green. "
    "What color is Brian?",
}


def examples(vocabulary: Collection[str]) -> list[dict[str, object]]:
    """All examples, those with the fewest words outside the ``vocabulary`` first."""
    stories = []
    for title, text in _STORIES.items():
        *sentences, question = cut_sentences(text)
        stories.append((title, StoryExample(tuple(sentences), question, "")))
    for task, title in TASKS.items():
        questions = generate_story(task, 0, 2)  # among those that models are tested on
        short = [question for question in questions if len(question.sentences) <= _LONGEST]
        stories.append((f"{task}: {title}", (short or questions[:1])[-1]))

    def unknown(titled: tuple[str, StoryExample]) -> int:
        texts = (*titled[1].sentences, titled[1].question)
        return len({word for text in texts for word in words_of(text)} - set(vocabulary))

    return [
        {"title": title, "sentences": list(example.sentences), "question": example.question}
        for title, example in sorted(stories, key=unknown)
    ]


def panel_facts(facts: ModelFacts) -> dict[str, object]:
    """The limits of a story, and examples, for the editor."""
    return {"sentences": SENTENCES, "characters": CHARACTERS, "examples": examples(facts.answers)}


def page_model(model: nn.Module, facts: ModelFacts, name: str) -> PageModel:
    """See :meth:`saccade.families.Family.page_model`."""
    if not isinstance(model, MemN2NModel):
        named = f"'{name}' ({facts.architecture})"
        raise ConfigError(f"{named} does not run inside a page; memn2n does; use 'saccade serve'")
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
    return PageModel("memn2n", {"layers": layers}, trace)
