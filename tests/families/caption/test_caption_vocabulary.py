"""Words, vocabularies, batches of like length, and captions that a predictor finds."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import saccade
from caption_stubs import save_tiny_captioner
from saccade.errors import CheckpointError, DataError
from saccade.families.caption.data import bucketed_order
from saccade.families.caption.vocabulary import END, UNKNOWN, Vocabulary, tokenise
from saccade.predict import Predictor

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
    assert Vocabulary.build(CAPTIONS, at_least=1, most=3).words == ("a", "dog", "and")


def test_there_and_back():
    vocabulary = Vocabulary(("a", "dog"))
    assert vocabulary.encode("A dog, a CAT!") == [2, 3, 2, UNKNOWN]
    assert vocabulary.decode([2, 3, 2, UNKNOWN, END, 3]) == "a dog a <unknown>"
    assert vocabulary.decode([2, -1, 3]) == "a"
    assert vocabulary.decode([]) == vocabulary.decode([END]) == ""
    assert vocabulary.encode("") == []


def test_damaged_words_of_a_model_are_refused():
    for entries in ([], ["a", "b"], ["<end>", "<unknown>", "a", "a"]):
        with pytest.raises(CheckpointError):
            Vocabulary.of_model(entries)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The dog's ball, isn't it?", "the dog 's ball is n't it"),
        ("They’re at the boys’ park", "they 're at the boys park"),
        ("can't won't n't", "ca n't wo n't n't"),
        ("ＡＢＣ ﬁsh CAFÉ", "abc fish café"),
        ("काला कुत्ता दौड़ता है।", "काला कुत्ता दौड़ता है"),
        ("<end> a-b- -c . , ! \n\t", "end a-b c"),
    ],
)
def test_words(text, words):
    assert tokenise(text) == words.split()


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


@pytest.fixture(scope="module", params=["soft", "hard"])
def teller(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    folder = save_tiny_captioner(tmp_path_factory.mktemp("models") / request.param, hard=request.param == "hard")
    return saccade.load(folder, "cpu")


@pytest.mark.parametrize(("beam", "captions"), [(2, 3), (0, 1), (1, 0)])
def test_more_captions_than_the_beam_follows_are_refused(teller: Predictor, beam: int, captions: int) -> None:
    with pytest.raises(DataError, match="no more than the beam follows"):
        teller.look("no-such-picture.png", beam=beam, captions=captions)
