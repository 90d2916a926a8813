"""Stories with one thing changed."""

import random

import pytest

from saccade.families.story.edits import (
    exchanged,
    names_in,
    pairs_of_names,
    removed,
    replaced,
    reworded,
    rules_know,
)
from saccade.families.story.stories import StoryExample

STORY = StoryExample(
    ("Mary moved to the garden.", "John went to the office.", "Mary travelled to the kitchen."),
    "Where is Mary?", "kitchen", (2,), "qa1",
)  # fmt: skip
WORDS = {"mary", "john", "sandra", "moved", "went", "travelled", "to", "the", "garden", "office", "kitchen"}


def test_without_a_sentence_the_rules_say_what_the_answer_is_then():
    edit = removed(STORY, 2)
    assert (edit.kept, edit.truth, edit.facts) == ((0, 1), "garden", (0,))
    assert edit.asked.supporting == (), "the fact is gone"
    assert removed(removed(STORY, 2).asked, 0).truth is None, "nothing is told of Mary"
    assert removed(STORY, 0).asked.supporting == (1,), "it moved up"
    assert rules_know(STORY)
    assert not rules_know(StoryExample(STORY.sentences, "Where is Mary?", "garden"))


def test_a_sentence_is_reworded_in_known_words_or_not_at_all():
    edit = reworded(STORY, 1, WORDS, random.Random(0))
    assert edit.asked.sentences[1] in ("John moved to the office.", "John travelled to the office.")
    assert (edit.kept, edit.truth, edit.asked.supporting) == ((0, 1, 2), "kitchen", (2,))
    assert reworded(STORY, 1, WORDS - {"moved", "travelled"}, random.Random(0)) is None
    other = StoryExample(("Lily is a swan.",), "What color is Lily?", "white")
    assert reworded(other, 0, WORDS, random.Random(0)) is None


def test_a_sentence_is_replaced_by_one_about_nothing_asked():
    others = ["Mary went to the office.", "Sandra moved to the kitchen.", "Sandra moved to the garden."]
    edit = replaced(STORY, 1, others, random.Random(0))
    assert edit.asked.sentences[1] == "Sandra moved to the garden."
    assert edit.kept == (0, -1, 2)
    assert replaced(STORY, 1, others[:2], random.Random(0)) is None
    assert replaced(STORY, 1, [STORY.sentences[1]], random.Random(0)) is None, "the story has it"
    assert replaced(STORY, 1, [], random.Random(0)) is None


def test_names_are_what_opens_sentences_and_is_never_small():
    told = [
        STORY,
        StoryExample(("Wolves are afraid of mice.", "Mice are afraid of wolves.", "Then he left."), "?", "a"),
    ]
    assert names_in(told, {*WORDS, "wolves", "mice", "then", "he"}) == {"mary", "john"}


def test_names_are_exchanged_everywhere():
    asked = StoryExample(("Jeff gave the milk to Fred.", "Bill got it."), "Who gave the milk to fred?", "Jeff", (0,))
    edit = exchanged(asked, "jeff", "fred")
    assert edit.asked.sentences == ("Fred gave the milk to Jeff.", "Bill got it.")
    assert (edit.asked.question, edit.asked.answer, edit.names) == (
        "Who gave the milk to jeff?",
        "Fred",
        ("jeff", "fred"),
    )
    assert edit.truth == "fred"
    pairs = pairs_of_names(asked, {"jeff", "fred", "bill", "mary"}, random.Random(0))
    assert {one for one, _ in pairs} == {"jeff", "fred"}
    assert {two for _, two in pairs} == {"jeff", "fred", "bill"}, "names that the story has"
    for seed in range(8):
        first = pairs_of_names(asked, {"jeff", "fred", "bill", "mary"}, random.Random(seed))[:3]
        assert all("jeff" in pair for pair in first), "the answer"
    alone = StoryExample(("Jason is thirsty.",), "Where will jason go?", "kitchen", (0,))
    assert pairs_of_names(alone, {"jason", "yann"}, random.Random(0)) == [("jason", "yann")]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_drawn_depends_on_the_seed_alone(seed):
    first, second = (reworded(STORY, 0, WORDS, random.Random(seed)) for _ in range(2))
    assert first == second
