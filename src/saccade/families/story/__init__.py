"""Questions about stories: where is the apple? bAbI, generated stories, and your own tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from saccade import models
from saccade.families.registry import DataEntry, Family, ModelSpec

if TYPE_CHECKING:
    from torch import nn

    from saccade.families import Decode, InputReader, ModelFacts, PageModel, Responder, Task

MODELS = {
    "memn2n": ModelSpec(
        load=lambda: models.MemN2NModel,
        summary="a memory of sentences, read in hops of soft attention",
        paper="Sukhbaatar et al. 2015, arXiv:1503.08895",
    ),
    "dmn": ModelSpec(
        load=lambda: models.DMNModel,
        summary="a GRU reads the story; gates go over its sentences in passes",
        paper="Kumar et al. 2016, arXiv:1506.07285",
    ),
    "story-lstm": ModelSpec(
        load=lambda: models.StoryLSTMModel,
        summary="control: an LSTM over story and question, no attention",
        paper="the baseline of Sukhbaatar et al. 2015, arXiv:1503.08895",
    ),
}

DATA = {
    "stories": DataEntry(
        kind="generator",
        description="stories of a small world in the form of bAbI, with the sentences that the answer needs",
        licence="Apache-2.0",
        get="made on the fly",
    ),
    "babi": DataEntry(
        kind="reader",
        description="bAbI v1.2: twenty tasks, 1,000 or 10,000 training questions each, supporting facts",
        licence="CC BY 3.0",
        get="download tasks_1-20_v1-2.tar.gz of the bAbI project, unpack it, name it babi:FOLDER",
    ),
    "jsonl": DataEntry(
        kind="reader",
        description="your own: story, question, answer in each line; optional supporting, split, task, group",
        licence="yours",
        get="name it jsonl:PATH",
    ),
}


class Stories(Family):
    """Questions about stories."""

    def reads(self) -> InputReader:
        from saccade.families.story.reading import STORIES

        return STORIES

    def task(self) -> type[Task]:
        from saccade.families.story.task import StoryTask

        return StoryTask

    def decode(self) -> Decode:
        from saccade.families.story.reading import decode

        return decode

    def responder(self) -> type[Responder]:
        from saccade.families.story.reading import StoryResponder

        return StoryResponder

    def panel_facts(self, facts: ModelFacts) -> dict[str, object]:
        from saccade.families.story.page import panel_facts

        return panel_facts(facts)

    def page_model(self, model: nn.Module, facts: ModelFacts, name: str) -> PageModel:
        from saccade.families.story.page import page_model

        return page_model(model, facts, name)


FAMILY = Stories(
    name="story",
    title="a story and a question in, the answer out",
    folder=Path(__file__).parent,
    models=MODELS,
    data=DATA,
    options=("sweeps",),
    asks_text=True,
    headline=("mean_error", "accuracy"),
    columns=(frozenset({"story", "question", "answer"}),),
    featured=("memn2n-babi",),
    live=("memn2n-babi",),
    panel="js/panel.js",
    runtime="js/runtime.js",
)
