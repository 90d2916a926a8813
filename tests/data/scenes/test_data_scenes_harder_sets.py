"""MDIST and MBG beside MREF: the same digits and the same truth, with something behind them that never moves."""

import pytest
import torch

from saccade.data.scenes.photographs import SHIPPED
from saccade.families.question.scenes import SceneBatch, SceneData, SceneDataConfig

HARDER = ("mdist", "mbg")


def data(name: str, split: str = "train", **settings) -> SceneData:
    config = SceneDataConfig(name=name, glyphs="pack", backgrounds=str(SHIPPED), **settings)
    return SceneData(config, split)


@pytest.fixture(scope="module")
def plain() -> SceneBatch:
    return data("mref").take(torch.arange(64))


@pytest.fixture(scope="module", params=HARDER)
def batch(request) -> SceneBatch:
    return data(request.param).take(torch.arange(64))


def behind(batch: SceneBatch) -> torch.Tensor:
    """The backgrounds (B, 3, H, W) of a batch, as 0..1."""
    layout = batch.layout
    return layout.spec.background(layout.glyphs, layout.seed, layout.index, layout.spec.size) / 255


def test_questions_answers_and_evidence_are_those_of_mref(batch, plain):
    for column in ("index", "classes", "glyph", "colour", "noise", "extent", "x", "y", "present"):
        assert torch.equal(getattr(batch.layout, column), getattr(plain.layout, column)), column
    for column in ("query", "label", "object"):
        assert torch.equal(getattr(batch, column), getattr(plain, column))
    assert torch.equal(batch.evidence(), plain.evidence())
    assert torch.equal(batch.objects(), plain.objects())
