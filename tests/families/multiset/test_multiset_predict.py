"""A predictor of a model that needs no question: multisets, how sure they are, records, and wrong questions."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import saccade
from glimpse_traces import glimpse_trace
from saccade.config import to_dict
from saccade.errors import DataError
from saccade.models.base import Raw
from saccade.models.hsal import HsalModel
from saccade.models.io.facts import ModelFacts, Preprocessing
from saccade.models.io.folder import save_model
from saccade.models.multiset_reader import LabelReader
from saccade.predict import Predictor
from saccade.record import read_record
from saccade.show.report_sources import report_from_records
from saccade.trace import Look
from tiny_models import save_tiny

CLASSES = ("cat", "dog", "owl")
STOP = len(CLASSES)


class Scripted(LabelReader):
    """Says what it was told to say, each with the probability 3/6; the looks are those of ``glimpse_trace``."""

    total = "mean"

    def __init__(self, said: list[int]) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.said = said

    def encode(self, images: Tensor) -> Tensor:
        return images

    def answer(self, encoding: Tensor) -> Raw:
        said = torch.tensor(self.said).expand(len(encoding), -1)  # (B,T)
        odds = torch.ones(*said.shape, STOP + 1).scatter(-1, said[..., None], 3.0)  # (B,T,4)
        return {"class_logits": odds.log(), "said": said}

    def looks(self, raw: Raw) -> tuple[Look, ...]:
        ended = (raw["said"] == STOP).cumsum(1) > 0
        labels = int((~ended)[0].sum())
        every = glimpse_trace(labels, (40, 50)).looks
        return tuple(
            look.map(lambda name, tensor: tensor if name == "frame" else tensor.repeat_interleave(len(ended), 0))
            for look in every
        )


def scripted(*said: int) -> Predictor:
    facts = ModelFacts(
        architecture="scripted", model={}, family="multiset", queries=(), answers=CLASSES,
        preprocessing=Preprocessing((40, 50)), name="reader",
    )  # fmt: skip
    return Predictor(Scripted(list(said)), facts)


PICTURE = Image.new("RGB", (50, 40))
HALF = pytest.approx(0.5)


def test_labels_come_as_they_were_said_and_the_answer_in_the_order_of_classes() -> None:
    seen = scripted(2, 0, 2, STOP).look(PICTURE)
    assert seen.answer == "{cat, owl, owl}"
    assert seen.labels == (("owl", HALF), ("cat", HALF), ("owl", HALF))
    assert seen.confidence == pytest.approx(0.5**4)  # three labels and the stop
    assert (seen.question, seen.alternatives) == (None, ())
    assert seen.trace.answer.tolist() == [[2, 0, 2, STOP]]


def test_it_looked_at_the_last_glimpse_before_each_label() -> None:
    """On cells of 10 pixels, five in a row: 0 and 7 before the owl, 13 twice before the cat."""
    seen = scripted(2, 0, STOP, STOP).look(PICTURE)
    assert seen.glimpses() == [[(5, 5), (25, 15)], [(35, 25), (35, 25)]]
    assert seen.looked_at == [(25, 15), (35, 25)]
    assert seen.to_json()["glimpses"] == [[[5, 5], [25, 15]], [[35, 25], [35, 25]]]


@pytest.mark.parametrize("size", [(1, 1), (400, 3), (3, 400)])
def test_a_glimpse_beside_the_picture_is_told_as_its_nearest_pixel(size: tuple[int, int]) -> None:
    """A picture that is no cell high leaves most cells on the border that makes it fit."""
    seen = scripted(2, 0, STOP, STOP).look(Image.new("RGB", size))
    points = seen.trace.chosen_on(seen.trace.look("glimpse"))[0]
    assert size == (1, 1) or bool(((points < 0) | (points >= torch.tensor(size))).any())
    told = [spot for spots in seen.glimpses() for spot in spots]
    assert len(told) == 4
    for spot, point in zip(told, points.tolist(), strict=False):  # what was glimpsed after the last label is not told
        assert spot == tuple(min(max(math.floor(place), 0), side - 1) for place, side in zip(point, size, strict=True))


def test_nothing_is_a_multiset_too() -> None:
    seen = scripted(STOP, STOP, STOP, STOP).look(PICTURE)
    assert (seen.answer, seen.labels, seen.confidence) == ("{}", (), HALF)
    assert seen.overlay().size == (400, 320)  # no label, no look that counts: a dark map, and no error
    assert "{}" in repr(seen)
    assert (seen.glimpses(), seen.looked_at) == ([], [seen.peak])


def test_who_never_stops_has_said_it_all() -> None:
    seen = scripted(0, 0, 1, 1).look(PICTURE)
    assert seen.answer == "{cat, cat, dog, dog}"
    assert seen.confidence == pytest.approx(0.5**4)


def test_what_is_said_after_the_stop_does_not_count() -> None:
    seen = scripted(1, STOP, 0, 0).look(PICTURE)
    assert (seen.answer, len(seen.labels or ())) == ("{dog}", 1)


def test_questions_are_refused_before_the_picture_is_read() -> None:
    with pytest.raises(DataError, match="'reader' takes no question: it says what it sees; leave out '3'"):
        scripted(0, STOP, STOP, STOP).look("no-such-picture.png", ask=3)
    with pytest.raises(DataError, match="takes no question"):
        list(scripted(0, STOP, STOP, STOP).look_many([PICTURE], ask="cat"))
    predictor = scripted(0, STOP, STOP, STOP)
    with pytest.raises(DataError, match="questions"):
        predictor.ask_all(predictor.encode(PICTURE))


def test_models_that_are_asked_still_need_their_question(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="needs a question"):
        saccade.load(save_tiny(tmp_path / "tiny"), "cpu").look(PICTURE)


def test_json_has_the_labels_and_every_key_that_was_there_before(tmp_path: Path) -> None:
    told = scripted(2, 0, STOP, STOP).look(PICTURE).to_json()
    assert told["labels"] == [["owl", 0.5], ["cat", 0.5]]
    asked = saccade.load(save_tiny(tmp_path / "tiny"), "cpu").look(PICTURE, ask=1).to_json()
    assert set(told) - set(asked) == {"labels", "glimpses"}
    assert not set(asked) - set(told)


def test_a_saved_sighting_reads_back_and_is_drawn_label_by_label(tmp_path: Path) -> None:
    seen = scripted(2, 0, STOP, STOP).look(PICTURE)
    shown, record, _ = seen.save(tmp_path)  # a filmstrip: it was read label by label
    assert Image.open(shown).size == seen.filmstrip().size
    read = read_record(record)
    assert read.info["labels"] == [["owl", 0.5], ["cat", 0.5]]
    assert json.loads(record.read_text())["info"]["answer"] == "{cat, owl}"
    assert "{cat, owl}" in report_from_records([read]).html()
    assert "{cat, owl}" in seen._repr_html_()


@pytest.fixture
def predictor(tmp_path: Path) -> Predictor:
    """An untaught HSAL, from its folder."""
    torch.manual_seed(0)
    config = HsalModel.tiny()
    facts = ModelFacts(
        architecture="hsal", model=to_dict(config), family="multiset", queries=(), answers=CLASSES,
        preprocessing=Preprocessing(config.input_size),
    )  # fmt: skip
    save_model(HsalModel(config), tmp_path / "hsal", facts)
    return saccade.load(tmp_path / "hsal", "cpu")


@pytest.mark.parametrize("size", [(1, 1), (1, 700), (900, 2), (1200, 900)])
def test_pictures_of_any_size_are_read(size: tuple[int, int], predictor: Predictor) -> None:
    for colour in ("black", "white"):
        seen = predictor.look(Image.new("RGB", size, colour))
        seen.trace.validate()
        assert 0 <= seen.confidence <= 1
        assert seen.trace.image_map().shape == (1, size[1], size[0])
        assert bool(seen.trace.image_map().isfinite().all())


def test_a_saved_model_says_the_same_together_and_one_by_one(predictor: Predictor) -> None:
    pictures = [torch.rand(3, 31, 34, generator=torch.Generator().manual_seed(n)) for n in range(4)]
    alone = [predictor.look(picture) for picture in pictures]
    for one, other in zip(alone, predictor.look_many(pictures, batch_size=3), strict=True):
        assert one.answer == other.answer
        assert one.confidence == pytest.approx(other.confidence, abs=1e-6)
        torch.testing.assert_close(one.trace.image_map(), other.trace.image_map())
    encoded = predictor.encode(pictures[0])
    assert predictor.ask(encoded).answer == alone[0].answer
    alone[0].trace.validate()
    assert alone[0].filmstrip().width > 0
