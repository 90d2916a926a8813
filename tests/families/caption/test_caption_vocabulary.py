"""Vocabularies: which words, in which order, and every way to and from numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import CheckpointError, DataError
from saccade.families.caption.vocabulary import END, UNKNOWN, Vocabulary

CAPTIONS = ("A dog.", "a cat and a dog", "the Dog")  # dog 3, a 3, and 1, cat 1, the 1


def test_the_most_frequent_come_first_and_ties_go_by_the_alphabet():
    vocabulary = Vocabulary.build(CAPTIONS, at_least=1)
    assert vocabulary.words == ("a", "dog", "and", "cat", "the")
    assert vocabulary.entries == ("<end>", "<unknown>", "a", "dog", "and", "cat", "the")
    assert len(vocabulary) == 7
    assert [vocabulary[number] for number in range(7)] == list(vocabulary.entries)
    assert "dog" in vocabulary
    assert "<end>" not in vocabulary


def test_frequency_and_number_cut_it():
    assert Vocabulary.build(CAPTIONS, at_least=2).words == ("a", "dog")
    assert Vocabulary.build(CAPTIONS, at_least=3).words == ("a", "dog")
    assert Vocabulary.build(CAPTIONS, at_least=1, most=3).words == ("a", "dog", "and")
    assert Vocabulary.build(iter(CAPTIONS), at_least=1, most=1).words == ("a",)


def test_there_and_back():
    vocabulary = Vocabulary(("a", "dog"))
    assert vocabulary.encode("A dog, a CAT!") == [2, 3, 2, UNKNOWN]
    assert vocabulary.decode([2, 3, 2, UNKNOWN, END, 3]) == "a dog a <unknown>"
    assert vocabulary.decode([2, -1, 3]) == "a"
    assert vocabulary.decode([]) == vocabulary.decode([END]) == ""
    assert vocabulary.encode("") == []


@given(st.lists(st.text()))
def test_known_captions_survive(captions):
    try:
        vocabulary = Vocabulary.build(captions, at_least=1)
    except DataError:
        assert not any(vocabulary_words for vocabulary_words in map(Vocabulary(()).encode, captions))
        return
    for caption in captions:
        ids = vocabulary.encode(caption)
        assert UNKNOWN not in ids
        assert vocabulary.encode(vocabulary.decode(ids)) == ids
    assert Vocabulary.of_model(vocabulary.entries) == vocabulary


def test_damaged_words_of_a_model_are_refused():
    for entries in ([], ["a", "b"], ["<end>", "<unknown>", "a", "a"]):
        with pytest.raises(CheckpointError):
            Vocabulary.of_model(entries)
