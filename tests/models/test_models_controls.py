"""The controls of the attribute table: cross-attention, FiLM without attention, and the model without a question."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from saccade.attention.soft import attend_uniformly
from saccade.models.controls import BlindModel, CrossConfig, CrossModel, FeatureModulation, FilmModel
from saccade.models.picture_query import PictureQueryConfig, PictureQueryModel
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


def test_modulation_gradients() -> None:
    layer = FeatureModulation(2, 3).double()
    features = torch.randn(2, 2, 2, 3, dtype=torch.float64, requires_grad=True)
    query = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (features, query))


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


def test_without_modulation_film_is_blind() -> None:
    film, blind = published("film"), published("blind")
    blind.load_state_dict({name: t for name, t in film.state_dict().items() if not name.startswith("modulations")})
    images, query = torch.rand(3, 3, 100, 100), torch.tensor([0, 4, 9])
    assert not torch.allclose(film(images, query).logits, blind(images, query).logits, atol=1e-3)
    for name, parameter in film.named_parameters():
        if name.startswith("modulations"):
            nn.init.zeros_(parameter)
    torch.testing.assert_close(film(images, query).logits, blind(images, query).logits)


def all_answers(model: nn.Module, image: Tensor) -> Tensor:
    logits: Tensor = model(image.expand(10, -1, -1, -1), torch.arange(10)).logits
    return logits


def test_blind_answers_every_question_alike_and_others_do_not() -> None:
    image = torch.zeros(1, 3, 100, 100)
    image[:, :, 10:40, 60:90] = torch.rand(3, 30, 30)  # cells must differ, or attention makes no difference
    logits = all_answers(published("blind"), image)
    assert torch.equal(logits, logits[:1].expand_as(logits))
    for name in ("cross", "film"):
        model = published(name)
        for parameter_name, parameter in model.named_parameters():
            if "quer" in parameter_name and parameter.dim() > 1:
                nn.init.normal_(parameter, std=3)
        logits = all_answers(model, image)
        assert not torch.allclose(logits, logits[:1].expand_as(logits), atol=1e-4), name


def test_the_classifier_of_cross_never_sees_the_query() -> None:
    model = published("cross")
    assert isinstance(model, CrossModel)
    nn.init.zeros_(model.attention.to_key.weight)
    logits = all_answers(model, torch.rand(1, 3, 100, 100))
    torch.testing.assert_close(logits, logits[:1].expand_as(logits), rtol=0, atol=1e-6)


def test_sizes_can_be_changed() -> None:
    small = {"queries": 3, "answers": 2, "channels": 4, "depth": 3}
    for model in (CrossModel(CrossConfig(**small, hidden=6)), FilmModel(PictureQueryConfig(**small))):
        output = model.eval()(torch.rand(1, 3, 60, 47), torch.tensor([2]))
        assert [look.name for look in output.trace.looks] == ["stage3"]
        assert output.logits.shape == (1, 2)
