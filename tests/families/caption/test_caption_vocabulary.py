"""Vocabularies: which words, in which order, and every way to and from numbers."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import CheckpointError, DataError
from saccade.families.caption.data import bucketed_order
from saccade.families.caption.vocabulary import END, UNKNOWN, Vocabulary, tokenise

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


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 99), st.integers(0, 9))
def test_every_caption_comes_once_and_full_batches_are_neighbours_in_length(lengths, batch_size, seed, epoch):
    given_lengths = torch.tensor(lengths)
    order = bucketed_order(given_lengths, batch_size, seed, epoch)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert torch.equal(order, bucketed_order(given_lengths, batch_size, seed, epoch))
    batches = given_lengths[order].split(batch_size)
    assert all(len(batch) == batch_size for batch in batches[:-1])
    # Batches cut from one sorted row: two of them share at most one length.
    spans = sorted((int(batch.min()), int(batch.max())) for batch in batches[: len(lengths) // batch_size])
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_padding_is_small_on_captions_of_many_lengths():
    lengths = torch.randint(5, 25, (3000,))
    batches = lengths[bucketed_order(lengths, 64, 0, 0)].split(64)
    padded = sum(int(batch.max()) * len(batch) for batch in batches)
    assert padded / int(lengths.sum()) < 1.05
    at_random = sum(int(batch.max()) * len(batch) for batch in lengths.split(64))
    assert at_random / int(lengths.sum()) > 1.5
