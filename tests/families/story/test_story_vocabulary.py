"""Words of stories by number, and the two forms of answers."""

import pytest

from saccade.errors import DataError
from saccade.families.story.stories import Asked
from saccade.families.story.vocabulary import StoryWords

STORY = [
    Asked(("Mary got the milk.", "Mary got the apple."), "What is Mary carrying?", "milk,apple"),
    Asked(("Mary got the milk.",), "Where will Mary go?", "living room"),
]
PLAIN = ["apple", "carrying", "go", "got", "is", "mary", "milk", "the", "what", "where", "will"]


def test_words_go_by_the_alphabet_after_padding():
    joined = StoryWords.build(STORY)
    assert joined.words == ("", *sorted([*PLAIN, "milk,apple", "living room"]))
    split = StoryWords.build(STORY, "split")
    assert split.words == ("", *sorted([*PLAIN, "living", "room"]))
    assert len(split) == 1 + len(PLAIN) + 2


def test_unknown_words_are_left_out_and_named_once():
    words = StoryWords(("", "apple", "got", "mary", "the"))
    assert words.ids("Mary grabbed the APPLE and grabbed.") == ([3, 4, 1], ["grabbed", "and"])
    assert words.ids("") == ([], [])


@pytest.mark.parametrize(("form", "tokens"), [("joined", ["milk,apple"]), ("split", ["milk", "apple"])])
def test_answers_there_and_back(form, tokens):
    words = StoryWords.build(STORY, form)
    ids, unknown = words.answer_ids("Milk,Apple")
    assert [words.words[number] for number in ids] == tokens
    assert unknown == []
    assert words.answer([*ids, 0]) == "milk,apple"
    assert words.answer_ids("Milk,pear")[1] == (["milk,pear"] if form == "joined" else ["pear"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "word 0 must be empty"),
        (("apple",), "word 0 must be empty"),
        (("", "apple", ""), "no other word may be"),
        (("", "apple", "milk", "apple"), "'apple' is there more than once"),
    ],
)
def test_words_that_cannot_be(words, why):
    with pytest.raises(DataError, match=why):
        StoryWords(words)


def test_no_words():
    with pytest.raises(DataError, match="no stories to take words from"):
        StoryWords.build([])
