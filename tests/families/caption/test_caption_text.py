"""Words of captions, as the reference evaluation parts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.families.caption.vocabulary import tokenise


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A black dog is running .", "a black dog is running"),
        ("The dog's ball, isn't it?", "the dog 's ball is n't it"),
        ("the ocean 's edge", "the ocean 's edge"),  # as Flickr8k writes it
        ("They’re at the boys’ park", "they 're at the boys park"),
        ("a 'small' \"T-shirt\" -- red", "a small t-shirt red"),
        ("can't won't n't", "ca n't wo n't n't"),
        ("at 2.5 m, 10,000 people; 12:30!", "at 2.5 m 10,000 people 12:30"),
        ("Sooners # 28 (at&t)", "sooners 28 at t"),
        ("dog.A cat...", "dog a cat"),
        ("ＡＢＣ ﬁsh CAFÉ", "abc fish café"),
        ("काला कुत्ता दौड़ता है।", "काला कुत्ता दौड़ता है"),
        ("a-b- -c --", "a-b c"),
        ("<end> _x_", "end x"),
        ("", ""),
        (" . , ! \n\t", ""),
    ],
)
def test_words(text, words):
    assert tokenise(text) == words.split()


@given(st.text())
def test_words_of_words_are_the_same(text):
    words = tokenise(text)
    assert tokenise(" ".join(words)) == words
    for word in words:
        assert word
        assert word.split() == [word]
