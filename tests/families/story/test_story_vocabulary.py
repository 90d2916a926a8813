"""Words of stories by number, and the two forms of answers."""

import pytest

from saccade.families.story.stories import StoryExample, answer_tokens, kept_places, story_words

STORY = [
    StoryExample(("Mary got the milk.", "Mary got the apple."), "What is Mary carrying?", "milk,apple"),
    StoryExample(("Mary got the milk.",), "Where will Mary go?", "living room"),
]
PLAIN = ["apple", "carrying", "go", "got", "is", "mary", "milk", "the", "what", "where", "will"]


def test_words_go_by_the_alphabet_after_padding():
    joined = story_words(STORY)
    assert joined == ("", *sorted([*PLAIN, "milk,apple", "living room"]))
    split = story_words(STORY, "split")
    assert split == ("", *sorted([*PLAIN, "living", "room"]))
    assert len(split) == 1 + len(PLAIN) + 2


@pytest.mark.parametrize(("form", "tokens"), [("joined", ("milk,apple",)), ("split", ("milk", "apple"))])
def test_an_answer_is_one_token_or_its_words(form, tokens):
    assert answer_tokens("Milk,Apple", form) == tokens
    assert set(tokens) <= set(story_words(STORY, form))


def test_the_last_sentences_with_a_known_word_get_slots():
    ids = [[1], [], [2], [3], []]
    assert kept_places(ids, 5) == [0, 2, 3]
    assert kept_places(ids, 2) == [2, 3]
    assert kept_places([[], []], 2) == []
