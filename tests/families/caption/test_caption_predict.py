"""A predictor of captions: sentences with their words, several of them, records, and options that do not fit."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from PIL import Image

import saccade
from caption_stubs import WORDS, save_tiny_captioner
from saccade.errors import ConfigError, DataError
from saccade.predict import Predictor
from saccade.record import read_record
from saccade.show.report_sources import report_from_records
from tiny_models import save_tiny

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


def test_the_log_probability_is_that_of_the_words_and_the_end(teller: Predictor) -> None:
    seen = teller.look(PICTURE)
    words = torch.tensor([[WORDS.index(word) for word, _ in seen.labels]])
    ended = words.shape[1] < teller.model.config.longest
    given = torch.cat([words, torch.zeros(1, 1, dtype=torch.long)], dim=1) if ended else words
    logits = teller.model.teacher_force(teller.encode(PICTURE).features, given)["logits"].double().log_softmax(-1)
    each = logits[0, torch.arange(given.shape[1]), given[0]]
    assert seen.log_probability == pytest.approx(float(each.sum()), abs=1e-4)
    assert seen.confidence == pytest.approx(math.exp(float(each.mean())), abs=1e-5)
    for (_, share), log_share in zip(seen.labels, each):
        assert share == pytest.approx(float(log_share.exp()), abs=1e-6)


def test_the_trace_has_a_step_for_every_word_and_lies_on_the_picture(teller: Predictor) -> None:
    seen = teller.look(PICTURE)
    seen.trace.validate()
    look = seen.trace.look("word")
    active = int(look.active.sum())
    assert active in (len(seen.labels), len(seen.labels) + 1)  # and the end, if it was said
    assert seen.trace.image_map("word").shape[-2:] == (62, 68)
    assert look.emits[0, : len(seen.labels)].tolist() == [WORDS.index(word) for word, _ in seen.labels]


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
    words = teller.model.caption(features, method="greedy").words[0, 0].tolist()
    assert teller.look(PICTURE, beam=1).answer == " ".join(WORDS[word] for word in words if word > 1)


def test_many_are_captioned_as_one_by_one(teller: Predictor) -> None:
    pictures = [torch.rand(3, 31, 34, generator=torch.Generator().manual_seed(n)) for n in range(4)]
    for one, other in zip(map(teller.look, pictures), teller.look_many(pictures, batch_size=3), strict=True):
        assert one.answer == other.answer
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
        torch.testing.assert_close(one.trace.image_map(), other.trace.image_map(), atol=1e-5, rtol=1e-4)


def test_json_tells_every_word(teller: Predictor) -> None:
    told = teller.look(PICTURE, captions=2).to_json()
    json.dumps(told, allow_nan=False)
    for entry in told["words"]:
        assert entry["log_probability"] <= 0
        assert 0 <= entry["gate"] <= 1
        assert 0 < entry["peak_weight"] <= 1
        x, y = entry["peak"]
        assert 0 <= x < 68
        assert 0 <= y < 62
    assert "labels" not in told
    (other,) = told["other_captions"]
    assert other["answer"] == told["alternatives"][0][0]
    assert other["words"]
    assert "other_captions" not in teller.look(PICTURE).to_json()


def test_saved_captions_are_strips_and_read_back(teller: Predictor, tmp_path: Path) -> None:
    seen = teller.look(PICTURE, captions=2)
    written = seen.save(tmp_path, "dog")
    assert [path.name for path in written] == [
        "dog.png", "dog.json", "dog.safetensors",
        "dog-caption-2.png", "dog-caption-2.json", "dog-caption-2.safetensors",
    ]  # fmt: skip
    assert Image.open(written[0]).size == seen.filmstrip().size
    read = read_record(written[4])
    assert read.info["answer"] == seen.others[0].answer
    assert [word["word"] for word in read.info["words"]] == [word for word, _ in seen.others[0].labels]
    assert seen.answer in report_from_records([read_record(written[1]), read]).html()
    assert seen.answer in seen._repr_html_()
    overlay = seen.save(tmp_path / "other", filmstrip=False)[0]
    assert Image.open(overlay).size == seen.overlay().size


def test_cells_are_drawn_on_request(teller: Predictor, tmp_path: Path) -> None:
    seen = teller.look(torch.rand(3, 31, 34, generator=torch.Generator().manual_seed(0)))
    smooth, exact = (seen.save(tmp_path, f"cells-{cells}", cells=cells)[0].read_bytes() for cells in (False, True))
    assert smooth != exact


def test_questions_are_refused(teller: Predictor) -> None:
    with pytest.raises(DataError, match="'teller' takes no question"):
        teller.look("no-such-picture.png", ask="what")


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


def test_a_wide_beam_is_taken_for_many_captions(teller: Predictor) -> None:
    seen = teller.look(PICTURE, captions=7)
    assert 4 <= len(seen.others) <= 6  # places that hold no caption are left out


def test_models_that_say_no_captions_refuse_the_options(tmp_path: Path) -> None:
    tiny = saccade.load(save_tiny(tmp_path / "tiny"), "cpu")
    with pytest.raises(DataError, match="'tiny' has no beam: its family 'question' takes twins; leave it out"):
        tiny.look(PICTURE, ask=1, beam=3)
    with pytest.raises(DataError, match="'tiny' has no captions, length_penalty: its family"):
        list(tiny.look_many([PICTURE], ask=1, captions=2, length_penalty=0.0))
