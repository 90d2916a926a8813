"""How a text is cut into words, and what one question of a story holds."""

import pytest

from saccade.families.story.stories import StoryExample, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mary got the milk there.", ("mary", "got", "the", "milk", "there")),
        ("Where is Mary? ", ("where", "is", "mary")),
        ("apple,milk", ("apple", "milk")),
        ("Then,  she\tleft!", ("then", "she", "left")),
        ("'Where?' asked “Sam”.", ("where", "asked", "sam")),
        ("Sam's box weighs 3.5 kg.", ("sam's", "box", "weighs", "3.5", "kg")),
        (" .?! ' ", ()),
        ("", ()),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


def test_a_question_is_a_value():
    first, second = (StoryExample(("Mary went.",), "Where?", "here", (0,), "qa1", "a.txt, line 2") for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    with pytest.raises(AttributeError):
        first.answer = "there"
