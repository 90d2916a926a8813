"""How a text is cut into words, and what one question of a story holds."""

import pytest

from saccade.families.story.stories import words_of


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
