"""Stories with one thing changed."""

import random

from saccade.families.story.edits import (
    exchanged,
    names_in,
    pairs_of_names,
    removed,
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
