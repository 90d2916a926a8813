"""Stories for a person to look at: the first questions of each task in a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest

from saccade.data.examples import Example
from saccade.data.tables.splits import Split
from saccade.families.splits import OpenedSplit, Progress, config_of
from saccade.families.story.data import StoryDataConfig, StorySource
from saccade.families.story.reading import StoryItem
from saccade.families.story.stories import StoryExample
from saccade.models.io.facts import ModelFacts


def open_split(
    settings: Mapping[str, object],
    split: Split,
    *,
    facts: ModelFacts | None = None,
    count: int | None = None,
    progress: Progress | None = None,
) -> OpenedSplit:
    """The questions of a split, one of each task in turn; see :class:`saccade.families.splits.OpenSplit`."""
    asked = StorySource(config_of(StoryDataConfig, settings)).questions(split)
    tasks = {each.task for each in asked}
    about = f" of {len(tasks)} tasks" if len(tasks) > 1 else ""
    return OpenedSplit(
        lambda many: [example_of(each) for each in in_turn(asked)[:many]], f"{len(asked):,} questions{about}"
    )


def example_of(asked: StoryExample) -> Example:
    """One question as a person sees it; the story knows which of its sentences the answer needs."""
    item = StoryItem(asked.sentences, asked.where or "story", supporting=asked.supporting)
    return Example(item, asked.answer, (), asked.question)


def in_turn(asked: Sequence[StoryExample]) -> list[StoryExample]:
    """The first question of every task, then the second of every task, and so on."""
    by_task: dict[str, list[StoryExample]] = {}
    for each in asked:
        by_task.setdefault(each.task, []).append(each)
    return [each for each in chain.from_iterable(zip_longest(*by_task.values())) if each is not None]
