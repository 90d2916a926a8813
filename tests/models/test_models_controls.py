"""The controls of the attribute table: cross-attention, FiLM without attention, and the model without a question."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from saccade.attention.soft import attend_uniformly
from saccade.models.controls import BlindModel, CrossModel, FeatureModulation, FilmModel
from saccade.models.picture_query import PictureQueryModel
from saccade.models.soft import SoftConfig, SoftModel

Near = Callable[..., None]

CONTROLS = {"cross": CrossModel, "film": FilmModel, "blind": BlindModel}
every_control = pytest.mark.parametrize("name", CONTROLS)


def published(name: str) -> PictureQueryModel:
    """A control in its published size."""
    torch.manual_seed(0)
    return CONTROLS[name](CONTROLS[name].Config()).eval()


def sizes(model: nn.Module) -> dict[str, int]:
    return {name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()}


@every_control
def test_stack_and_head_are_those_of_soft(name: str) -> None:
    soft, control = sizes(SoftModel(SoftConfig())), sizes(published(name))
    assert (control["backbone"], control["head"]) == (soft["backbone"], soft["head"]) == (28_640, 229)


def test_the_number_of_parameters() -> None:
    """By hand: keys 32·32 and queries 10·32; four times (10 + 1)·64; nothing."""
    assert sizes(published("cross"))["attention"] == 1_344
    assert sizes(published("film"))["modulations"] == 2_816
    assert sizes(published("blind")).keys() == {"backbone", "head"}


def test_attending_alike_by_hand(assert_near: Near) -> None:
    attended = attend_uniformly(torch.tensor([[[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [0.0, 1.0]]]]))
    assert_near(attended.context, [[3.0, 0.25]])
    assert_near(attended.weights, [[[0.25, 0.25], [0.25, 0.25]]])
    assert not attended.weights.requires_grad


@pytest.mark.parametrize("name", ["film", "blind"])
def test_no_attention_is_shown_as_none(name: str) -> None:
    """Every cell 1/HW: a map that says nothing, since the model looked everywhere alike."""
    raw = published(name).forward_raw(torch.rand(2, 3, 100, 100), torch.tensor([3, 7]))
    assert torch.equal(raw.acts["stage4"].weights, torch.full((2, 4, 4), 1 / 16))
    torch.testing.assert_close(raw.acts["stage4"].context, raw.acts["stage4"].values.mean((2, 3)))


def test_modulation_by_hand(assert_near: Near) -> None:
    """Query 2 of three: Δγ = (1, −1), β = (5, 7), so channel 0 is doubled plus 5, and channel 1 is 7."""
    layer = FeatureModulation(2, 3)
    with torch.no_grad():
        layer.from_query.weight.zero_()
        layer.from_query.bias.zero_()
        layer.from_query.weight[:, 2] = torch.tensor([1.0, -1.0, 5.0, 7.0])
    features = torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]])
    assert_near(layer(features, torch.tensor([[0.0, 0.0, 1.0]])), [[[[7.0, 9.0]], [[7.0, 7.0]]]])
    assert_near(layer(features, torch.tensor([[1.0, 0.0, 0.0]])), features)


def test_film_is_stage_and_modulation_in_turn() -> None:
    model = published("film")
    assert isinstance(model, FilmModel)
    images, query = torch.rand(2, 3, 100, 100), torch.tensor([3, 7])
    features = images
    for name, stage in model.backbone.stages.items():
        table = model.modulations[name].from_query
        row = table.weight.T[query] + table.bias  # (B,2C)
        features = stage(features) * (1 + row[:, :32, None, None]) + row[:, 32:, None, None]
    logits = model.head(features.mean((2, 3)))
    torch.testing.assert_close(model.forward_raw(images, query).logits, logits)


def test_blind_answers_every_question_alike() -> None:
    logits = published("blind")(torch.rand(1, 3, 100, 100).expand(10, -1, -1, -1), torch.arange(10)).logits
    assert torch.equal(logits, logits[:1].expand_as(logits))
