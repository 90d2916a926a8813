"""A stop of the tour at a model of stories: generated and founding stories, and their scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from story_folders import save_story_model

from saccade.families.story.data import StoryDataConfig, StorySource
from saccade.families.story.page.founding import FOUNDING_STORIES
from saccade.families.story.splits import in_turn, open_split
from saccade.families.story.stories import StoryExample
from saccade.families.story.tour import QUICK, stop
from saccade.families.story.vocabulary import story_words
from saccade.show.report import Report, SlotHeat
from saccade.verbs.touring.page import HEADLINE, Stop

DATA = {"name": "stories", "tasks": [1, 2], "words": "wide"}


def visited(folder: Path) -> tuple[Stop, list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    found = stop(str(folder), quick=True, device="cpu", progress=lambda what, done, total: told.append((done, total)))
    return found, told


@pytest.mark.parametrize("architecture", ["memn2n", "dmn"])
def test_stories_of_each_task_and_those_of_the_document(architecture: str, tmp_path: Path) -> None:
    config = StoryDataConfig(tasks=(1, 2), words="wide", questions=50)
    learned = StorySource(config).questions("train")
    words = story_words([*learned, *(each.asked for each in FOUNDING_STORIES)], "split")
    folder = save_story_model(tmp_path / "model", architecture, words=words, data=DATA, memory=20)
    found, told = visited(folder)
    tables = [block for block in found.section.blocks if isinstance(block, SlotHeat)]
    assert len(tables) == 2 + 3
    assert all(table.grid.supporting for table in tables[:4])
    assert [name in tables[number].caption for number, name in enumerate(("qa1", "qa2"))] == [True, True]
    assert "which does not follow from these sentences: the story is incomplete" in tables[4].caption
    assert told[-1] == (2 * QUICK, 2 * QUICK)
    row = dict(zip(HEADLINE, found.headline))
    assert (row["metric"], row["n here"]) == ("accuracy (here: of generated stories)", str(2 * QUICK))
    assert found.tables[0].rows[0][0] == "this model"
    page = Report("Tour", sections=[found.section]).html()
    assert "Sam drops the apple.</th>" in page


def test_a_model_of_other_words_is_told_of_and_not_scored(tmp_path: Path) -> None:
    folder = save_story_model(tmp_path / "model", words=("", "wer", "ist", "da"), data={"name": "jsonl"})
    found, _ = visited(folder)
    assert "No generated story is made of its words" in found.section.text
    assert not any(isinstance(block, SlotHeat) for block in found.section.blocks)
    assert (found.tables, found.headline[2]) == ([], "–")


def test_a_split_is_shown_task_by_task() -> None:
    asked = [StoryExample(("a",), "b", "c", task=task) for task in ("qa1", "qa1", "qa2", "qa3", "qa3")]
    assert [each.task for each in in_turn(asked)] == ["qa1", "qa2", "qa3", "qa1", "qa3"]
    opened = open_split({"name": "stories", "tasks": [1, 5], "questions": 20}, "test")
    first, second = opened.examples(2)
    assert opened.summary == "40 questions of 2 tasks"
    assert first.question.startswith("Where is")
    assert first.source.supporting
    assert first.truth != second.truth
