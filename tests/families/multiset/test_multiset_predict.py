"""A predictor of a model that needs no question: multisets, how sure they are, records, and wrong questions."""

from __future__ import annotations

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from glimpse_traces import glimpse_trace
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.multiset_reader import LabelReader
from saccade.predict import Predictor
from saccade.trace import Look, MultisetOutput

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

    def answer(self, encoding: Tensor) -> MultisetOutput:
        said = torch.tensor(self.said).expand(len(encoding), -1)  # (B,T)
        odds = torch.ones(*said.shape, STOP + 1).scatter(-1, said[..., None], 3.0)  # (B,T,4)
        return MultisetOutput(odds.log(), said=said)

    def looks(self, output: MultisetOutput) -> tuple[Look, ...]:
        ended = (output.said == STOP).cumsum(1) > 0
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
