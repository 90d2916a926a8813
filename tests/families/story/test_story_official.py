"""The rule reader and the generator against the official files of bAbI, which are not part of this package.

``SACCADE_BABI`` names their folder; without it these tests are skipped.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from saccade.families.story.files import babi_files, read_babi
from saccade.families.story.stories import StoryExample, story_words
from saccade.families.story.world import TASKS, derive, generate_story

FOLDER = os.environ.get("SACCADE_BABI")
pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(not FOLDER, reason="SACCADE_BABI does not name the folder of the official files"),
]
SUPPORT = {5: 0.99, 18: 0.9}
"""Supporting facts that agree at least, where a question has several ways to its answer; elsewhere all do."""


def official(task: int, part: str) -> list[StoryExample]:
    return read_babi(babi_files(Path(FOLDER or ""), "1k")[f"qa{task}"][part], f"qa{task}")


def generated(task: int, stories: int = 400) -> list[StoryExample]:
    return [asked for index in range(stories) for asked in generate_story(task, 11, index)]


@pytest.mark.parametrize("task", TASKS)
def test_the_rule_reader_agrees(task):
    asked = [*official(task, "train"), *official(task, "test")]
    found = [derive(one.sentences, one.question) for one in asked]
    right = [known is not None and known.answer == one.answer.lower() for known, one in zip(found, asked, strict=True)]
    assert sum(right) >= len(asked) * (0.99 if task == 5 else 1.0)
    same = [known is not None and known.supporting == one.supporting for known, one in zip(found, asked, strict=True)]
    assert sum(same) >= len(asked) * SUPPORT.get(task, 1.0)


@pytest.mark.parametrize("task", TASKS)
def test_generated_stories_look_like_official_ones(task):
    true, made = [*official(task, "train"), *official(task, "test")], generated(task)
    assert set(story_words(made, "split")) <= set(story_words(true, "split"))
    for told in (lambda one: len(one.sentences), lambda one: len(one.supporting)):
        means = [sum(map(told, asked)) / len(asked) for asked in (true, made)]
        assert means[1] == pytest.approx(means[0], rel=0.15)
    answers = [Counter(one.answer for one in asked) for asked in (true, made)]
    for answer, count in answers[0].items():
        share = count / answers[0].total()
        assert answers[1][answer] / answers[1].total() == pytest.approx(share, abs=0.06), answer
