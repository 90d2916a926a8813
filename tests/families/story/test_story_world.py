"""The story world: the rule reader on hand-written stories, the generator against it, and both against bAbI's files."""

import itertools
import os
from collections import Counter
from pathlib import Path

import pytest

from saccade.families.story.data import babi_files, read_babi
from saccade.families.story.stories import story_words
from saccade.families.story.world import TASKS, derive, generate_story

HELD = ["Mary moved to the bathroom.", "Mary got the milk there.", "Mary went back to the garden."]
DROPPED = [*HELD, "Mary put down the milk.", "Mary travelled to the office."]
FOUND_AGAIN = [*DROPPED, "John journeyed to the garden.", "John took the milk.", "John left the milk there."]
GIFTS = ["Bill gave the milk to Fred.", "Fred handed the milk to Mary.", "Bill passed the apple to Fred."]
TIMES = [
    "Julie went to the school this morning.",
    "Yesterday Julie moved to the office.",
    "This evening Julie travelled to the school.",
    "Julie journeyed to the park this afternoon.",
]
CARRIED = ["Mary got the milk.", "Mary took the apple.", "Mary dropped the milk.", "Mary grabbed the milk there."]
COUPLE = ["Mary and John went to the office.", "Daniel moved to the park.", "Afterwards they moved to the hallway."]
ROOMS = ["The office is north of the kitchen.", "The garden is south of the kitchen.", "The den is east of the garden."]
FEARS = ["Mice are afraid of wolves.", "Emily is a mouse.", "Wolves are afraid of cats.", "Winona is a wolf."]
COLOURS = ["Lily is a swan.", "Lily is gray.", "Greg is a swan.", "Brian is a swan.", "Greg is white."]
SHAPES = ["The triangle is above the pink rectangle.", "The blue square is to the left of the triangle."]
SIZES = ["The box of chocolates fits inside the chest.", "The box is bigger than the chest."]
TIRED = ["Sumit is tired.", "Yann is bored.", "Sumit went back to the bedroom.", "Sumit is thirsty."]
SHE = ["Mary went to the office.", "John moved to the park.", "Following that she went to the hallway."]


@pytest.mark.parametrize(
    ("story", "question", "answer", "supporting"),
    [
        (HELD, "Where is Mary?", "garden", (2,)),
        (HELD, "Where is the milk?", "garden", (1, 2)),
        (DROPPED, "Where is the milk?", "garden", (3, 2)),
        (DROPPED, "Where was the milk before the garden?", "bathroom", (3, 2, 0)),
        (FOUND_AGAIN, "Where is the milk?", "garden", (7, 5)),
        (GIFTS, "Who gave the milk?", "fred", (1,)),
        (GIFTS, "Who received the milk?", "mary", (1,)),
        (GIFTS, "What did Bill give to Fred?", "apple", (2,)),
        (GIFTS, "Who did Bill give the apple to?", "fred", (2,)),
        (HELD, "Is Mary in the garden?", "yes", (2,)),
        (HELD, "Is Mary in the bathroom?", "no", (2,)),
        (CARRIED, "How many objects is Mary carrying?", "two", (0, 1, 2, 3)),
        (CARRIED, "What is Mary carrying?", "milk,apple", (0, 2, 3, 1)),
        (["Mary got the milk.", "Mary dropped the milk."], "What is Mary carrying?", "nothing", (0, 1)),
        (["Mary is no longer in the park."], "Is Mary in the park?", "no", (0,)),
        (["Mary is either in the park or the school."], "Is Mary in the school?", "maybe", (0,)),
        (SHE, "Where is Mary?", "hallway", (0, 2)),
        (COUPLE, "Where is John?", "hallway", (0, 2)),
        (TIMES, "Where was Julie before the school?", "park", (2, 3)),
        (TIMES, "Where was Julie before the park?", "school", (3, 0)),
        (ROOMS, "What is north of the kitchen?", "office", (0,)),
        (ROOMS, "What is the office north of?", "kitchen", (0,)),
        (ROOMS, "What is the kitchen north of?", "garden", (1,)),
        (ROOMS, "How do you go from the office to the garden?", "s,s", (0, 1)),
        (FEARS, "What is emily afraid of?", "wolf", (1, 0)),
        (COLOURS, "What color is Brian?", "white", (3, 2, 4)),
        (COLOURS[:4], "What color is Brian?", "gray", (3, 0, 1)),
        (COLOURS, "What color is Lily?", "gray", (1,)),
        (SHAPES, "Is the pink rectangle to the right of the blue square?", "yes", (0, 1)),
        (SHAPES, "Is the blue square below the pink rectangle?", "no", (1, 0)),
        (SIZES, "Does the box fit in the box of chocolates?", "no", (0, 1)),
        (SIZES, "Is the box bigger than the box of chocolates?", "yes", (1, 0)),
        (TIRED[:3], "Where will sumit go?", "bedroom", (0,)),
        (TIRED[:3], "Why did sumit go to the bedroom?", "tired", (0,)),
        (TIRED, "Where will sumit go?", "kitchen", (3,)),
        (["Sam walks into the den.", "Sam picks up an apple."], "Where is the apple?", "den", (1, 0)),
    ],
)
def test_answers(story, question, answer, supporting):
    assert derive(story, question) == (answer, supporting)


@pytest.mark.parametrize(
    ("story", "question"),
    [
        ([], "Where is Mary?"),
        (HELD, "Where is John?"),
        (HELD, "Where is the apple?"),
        (HELD, "Where was the milk before the bathroom?"),
        (["Mary got the milk."], "Where is the milk?"),
        (["Mary is not in the park."], "Is Mary in the office?"),
        (["Mary is not in the park."], "Where is Mary?"),
        ([*HELD, "Mary is no longer in the garden."], "Where is the milk?"),
        (HELD, "Why did Mary go to the garden?"),
        (ROOMS, "What is west of the kitchen?"),
        (ROOMS, "How do you go from the office to the attic?"),
        (FEARS[1:], "What is emily afraid of?"),
        (COLOURS[2:4], "What color is Brian?"),
        (SHAPES, "Is the red square above the triangle?"),
        (["She went to the office."], "Where is Mary?"),
        (["The sun shines."], "Where is Mary?"),
    ],
)
def test_what_a_story_does_not_tell_has_no_answer(story, question):
    assert derive(story, question) is None


STORIES = 60
QUESTIONS = {4: {1}, 15: {4}, 16: {1}, 17: {8}, 18: {5}, 19: {1}, 20: {9, 10, 11, 12}}
"""Questions in a story, where they are not five."""


@pytest.mark.parametrize("words", ["babi", "wide"])
@pytest.mark.parametrize("task", TASKS)
def test_the_rule_reader_finds_the_same_answers_and_supporting_sentences(task, words):
    for index in range(STORIES):
        story = generate_story(task, 3, index, words)
        assert len(story) in QUESTIONS.get(task, {5})
        for asked in story:
            assert derive(asked.sentences, asked.question) == (asked.answer.lower(), asked.supporting), asked
        for earlier, later in itertools.pairwise(story):
            assert later.goes_on(earlier)


@pytest.mark.parametrize("task", TASKS)
def test_supporting_sentences_decide_the_answer_and_no_other_does(task):
    changed: dict[bool, list[bool]] = {True: [], False: []}
    for index in range(STORIES):
        asked = generate_story(task, 4, index)[-1]
        if task != 3:  # the official files leave out the sentence in which the thing is taken
            alone = [asked.sentences[at] for at in sorted(asked.supporting)]
            assert derive(alone, asked.question).answer == asked.answer.lower(), asked
        last = asked.supporting[-1]
        for removed in {last, *range(len(asked.sentences))} - set(asked.supporting[:-1]):
            without = [sentence for at, sentence in enumerate(asked.sentences) if at != removed]
            known = derive(without, asked.question)
            changed[removed == last].append(known is None or known.answer != asked.answer.lower())
    assert sum(changed[True]) > 0.55 * STORIES  # "no" often stays "no"
    # pronouns lose their names, and a thing in task 3 the sentence in which it was taken
    assert sum(changed[False]) <= (0.06 * len(changed[False]) if task in (3, 11, 13) else 0)


def test_a_story_depends_on_seed_task_and_number_alone_and_stays_as_it_was():
    """Stories are named by seed and number in records: these words must never change."""
    first, *_, last = generate_story(1, 0, 0)
    assert first.sentences == ("Sandra moved to the hallway.", "Mary journeyed to the kitchen.")
    assert (first.question, first.answer, first.supporting) == ("Where is Sandra?", "hallway", (0,))
    assert (last.task, last.where) == ("qa1", "generated, seed 0, qa1, story 0")
    stories = [generate_story(2, 0, index) for index in range(8)]
    assert [generate_story(2, 0, index) for index in reversed(range(8))] == stories[::-1]
    assert len({story[0].sentences for story in [*stories, generate_story(2, 1, 0)]}) == 9


def test_answers_are_balanced():
    for task in (6, 17, 18):
        answers = Counter(asked.answer for index in range(200) for asked in generate_story(task, 0, index))
        assert 0.45 < answers["yes"] / answers.total() < 0.55, task
    rooms = Counter(asked.answer for index in range(200) for asked in generate_story(1, 0, index))
    assert len(rooms) == 6
    assert max(rooms.values()) < 1.5 * min(rooms.values())


SUPPORT = {5: 0.99, 18: 0.9}
"""Supporting facts that agree at least, where a question has several ways to its answer; elsewhere all do."""


@pytest.mark.reference
@pytest.mark.skipif("SACCADE_BABI" not in os.environ, reason="SACCADE_BABI does not name the folder of bAbI's files")
@pytest.mark.parametrize("task", TASKS)
def test_rules_and_stories_are_those_of_the_official_files(task):
    files = babi_files(Path(os.environ["SACCADE_BABI"]), "1k")[f"qa{task}"]
    true = [each for part in ("train", "test") for each in read_babi(files[part], f"qa{task}")]
    found = [derive(one.sentences, one.question) or ("", ()) for one in true]
    assert sum(known[0] == one.answer.lower() for known, one in zip(found, true)) >= len(true) * (
        0.99 if task == 5 else 1
    )
    assert sum(known[1] == one.supporting for known, one in zip(found, true)) >= len(true) * SUPPORT.get(task, 1.0)
    made = [asked for index in range(400) for asked in generate_story(task, 11, index)]
    assert set(story_words(made, "split")) <= set(story_words(true, "split"))
    for told in (lambda one: len(one.sentences), lambda one: len(one.supporting)):
        means = [sum(map(told, asked)) / len(asked) for asked in (true, made)]
        assert means[1] == pytest.approx(means[0], rel=0.15)
    answers = [Counter(one.answer for one in asked) for asked in (true, made)]
    for answer, count in answers[0].items():
        share = count / answers[0].total()
        assert answers[1][answer] / answers[1].total() == pytest.approx(share, abs=0.06), answer
