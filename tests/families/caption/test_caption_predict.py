"""A predictor of captions: sentences with their words, several of them, records, and options that do not fit."""

from __future__ import annotations

import math

import pytest
from PIL import Image

import saccade
from caption_stubs import WORDS, save_tiny_captioner
from saccade.errors import ConfigError, DataError
from saccade.predict import Predictor

PICTURE = Image.new("RGB", (68, 62), (200, 40, 40))  # laid into 31 × 34 at half its size


@pytest.fixture(scope="module", params=["soft", "hard"])
def teller(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    folder = save_tiny_captioner(tmp_path_factory.mktemp("models") / request.param, hard=request.param == "hard")
    return saccade.load(folder, "cpu")


def test_a_caption_is_its_words(teller: Predictor) -> None:
    seen = teller.look(PICTURE)
    assert seen.labels
    assert seen.answer == " ".join(word for word, _ in seen.labels)
    assert all(word in WORDS[2:] for word, _ in seen.labels)  # neither an end nor an unknown word is ever told
    assert (seen.question, seen.others, seen.alternatives, seen.is_caption) == (None, (), (), True)


def test_several_captions_differ_and_each_has_its_own_trace(teller: Predictor) -> None:
    seen = teller.look(PICTURE, beam=5, captions=3)
    every = [seen, *seen.others]
    assert len({each.answer for each in every}) == 3
    assert [each.log_probability for each in every] == sorted((each.log_probability for each in every), reverse=True)
    assert seen.alternatives == tuple((each.answer, each.confidence) for each in seen.others)
    assert seen.answer == teller.look(PICTURE, beam=5).answer
    for each in every:
        said = each.trace.answer[0, : len(each.labels)].tolist()
        assert [WORDS[word] for word in said] == [word for word, _ in each.labels]


def test_greedy_is_a_beam_of_one(teller: Predictor) -> None:
    features = teller.encode(PICTURE).features
    words = teller.model.caption(features).words[0, 0].tolist()
    assert teller.look(PICTURE, beam=1).answer == " ".join(WORDS[word] for word in words if word > 1)


@pytest.mark.parametrize(("beam", "captions"), [(2, 3), (0, 1), (1, 0)])
def test_more_captions_than_the_beam_follows_are_refused(teller: Predictor, beam: int, captions: int) -> None:
    with pytest.raises(DataError, match="no more than the beam follows"):
        teller.look("no-such-picture.png", beam=beam, captions=captions)


def test_the_length_penalty_ranks_what_a_beam_has_found(teller: Predictor) -> None:
    """By 0 by their log p; by 1 by the mean over their words and the end, as their confidence says it."""
    plain, by_mean = (teller.look(PICTURE, captions=5, length_penalty=penalty) for penalty in (0.0, 1.0))
    likely = [each.log_probability for each in (plain, *plain.others)]
    sure = [each.confidence for each in (by_mean, *by_mean.others)]
    assert likely == sorted(likely, reverse=True)
    assert sure == sorted(sure, reverse=True)
    assert {plain.answer, *(each.answer for each in plain.others)} == {
        by_mean.answer,
        *(each.answer for each in by_mean.others),
    }
    with pytest.raises(ConfigError, match="length_penalty: a number, found nan"):
        teller.look(PICTURE, length_penalty=math.nan)
