"""HAttNet and HAttNet-CTX of Seo et al. (2016): sizes, the way of the gated features, the penalty, the ablations."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.families import model_spec
from saccade.models.hattnet import HAttNetConfig, HAttNetModel
from saccade.trace import Act

Near = Callable[..., None]
STAGES = ("stage1", "stage2", "stage3", "stage4")


def published(name: str = "hattnet-ctx", **settings: object) -> HAttNetModel:
    model = model_spec(name).build(settings)
    return model.eval()


def scene(count: int = 2) -> Tensor:
    """Black with one bright patch, so that cells differ."""
    images = torch.zeros(count, 3, 100, 100)
    images[:, :, 10:40, 60:90] = torch.rand(count, 3, 30, 30)
    return images


def test_the_looks_of_the_paper() -> None:
    """Gates on 49², 23² and 10² cells, a softmax on 4²; centres 2, 5, 11 and 23 pixels in, 2, 4, 8 and 16 apart."""
    output = published()(scene(), torch.tensor([0, 9]))
    looks = output.trace.validate().looks
    assert [look.name for look in looks] == list(STAGES)
    assert [(look.kind, look.norm) for look in looks] == [("gate", "sigmoid")] * 3 + [("soft", "softmax")]
    assert {look.role for look in looks} == {"multiplier"}
    assert output.trace.total == "product"
    for look, cells, start, stride in zip(looks, (49, 23, 10, 4), (2, 5, 11, 23), (2, 4, 8, 16), strict=True):
        assert look.weights.shape == (2, cells, cells)
        centre = geometry.apply(look.frame, torch.tensor([[0.5, 0.5], [1.5, 0.5]], dtype=torch.float64))
        assert centre.tolist() == [[start, start], [start + stride, start]]


@pytest.mark.parametrize("name", ["soft", "hard", "hattnet-ctx"])
def test_settings_of_the_authors_training(name: str) -> None:
    """The constants arrive in every norm; Glorot-uniform weights reach but do not pass their bound, biases are zero."""
    torch.manual_seed(0)
    model = model_spec(name).build({"norm_eps": 0.01, "norm_momentum": 0.5, "initial": "glorot"})
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    assert len(norms) == (4 if name == "hattnet-ctx" else 1)
    assert {(norm.eps, norm.momentum) for norm in norms} == {(0.01, 0.5)}
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            window = layer.weight[0, 0].numel()
            bound = (6 / (window * sum(layer.weight.shape[:2]))) ** 0.5
            assert 0.8 * bound < layer.weight.abs().max() <= bound
            assert layer.bias is None or not layer.bias.any()


def test_every_stage_sees_what_the_gate_before_it_let_through() -> None:
    """Eq. (5)-(8) step by step, with plain modules, in training mode so that norms are not the identity."""
    model = published().train()
    images, query = scene(3), torch.tensor([1, 5, 8])
    raw = model.forward_raw(images, query)
    asked = torch.eye(10)[query]
    features = images
    for name in STAGES[:3]:
        features = model.backbone.stages[name](features)
        torch.testing.assert_close(raw.acts[name].values, features)
        alpha = model.gates[name].scorer(features, asked).sigmoid()  # type: ignore[union-attr, operator]
        torch.testing.assert_close(raw.acts[name].weights, alpha)
        attended = alpha[:, None] * features
        torch.testing.assert_close(raw.acts[name].context, attended)
        mean, variance = attended.mean((0, 2, 3)), attended.var((0, 2, 3), unbiased=False)
        features = (attended - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
    features = model.backbone.stages["stage4"](features)
    torch.testing.assert_close(raw.acts["stage4"].values, features, rtol=1e-3, atol=1e-4)
    weights = model.attention.scorer(features, asked).flatten(1).softmax(1).unflatten(1, (4, 4))
    torch.testing.assert_close(
        raw.acts["stage4"].context, (weights[:, None] * features).sum((2, 3)), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize(
    ("settings", "gates", "last"),
    [
        ({"backbone": "vgg16"}, ["pool3", "pool4"], "pool5"),  # the paper's Section 5.2
        ({"backbone": "mobilenetv2", "through": "block0"}, [], "block0"),
        (
            {"backbone": "mobilenetv2", "through": "block4", "gated": ["block2", "block0"]},
            ["block0", "block2"],
            "block4",
        ),
    ],
)
def test_gates_of_deep_backbones(settings: dict[str, object], gates: list[str], last: str) -> None:
    """Behind the last two resolutions before the last, unless other stages are named."""
    model = published(**settings)
    assert (list(model.gates), model.look_name) == (gates, last)
    for name in gates:
        gate, norm = model.gates[name], model.norms[name]
        assert gate.scorer.from_features.in_channels == norm.num_features == model.backbone.channels[name]  # type: ignore[union-attr]


DEEP = {"backbone": "mobilenetv2", "through": "block7"}


def test_pretrained_stages_are_neither_normed_nor_starved() -> None:
    """Gates nearly open and no norm between: what reaches the next stages is near what they were trained on."""
    assert not published(**DEEP, pretrained=True).norms
    assert list(published(**DEEP).norms) == ["block3", "block6"]
    assert list(published(**DEEP, pretrained=True, norm_after_gates=True).norms) == ["block3", "block6"]
    raw = published(**DEEP, pretrained=True).forward_raw(torch.rand(8, 3, 64, 64), torch.arange(8))
    assert min(raw.acts[name].weights.mean() for name in ("block3", "block6")) > 0.8


def test_the_penalty_by_hand(assert_near: Near) -> None:
    """Two gates: scores 0 everywhere open one by a half, ln 3 opens the other by 3/4; mean 5/8, times 0.4: 1/4."""
    model = HAttNetModel(HAttNetConfig(queries=2, channels=4, depth=3, gate_penalty=0.4)).eval()
    for name, score in (("stage1", 0.0), ("stage2", torch.tensor(3.0).log().item())):
        scorer = model.gates[name].scorer
        nn.init.zeros_(scorer.to_score.weight)  # type: ignore[union-attr, arg-type]
        nn.init.constant_(scorer.to_score.bias, score)  # type: ignore[union-attr, arg-type]
    raw = model.forward_raw(torch.rand(3, 3, 40, 40), torch.tensor([0, 1, 0]))
    assert_near(raw.penalty, [0.25, 0.25, 0.25])  # one for each example, however many cells a stage has
    with torch.inference_mode():  # nothing can be learned from it
        assert model.forward_raw(torch.rand(3, 3, 40, 40), torch.tensor([0, 1, 0])).penalty is None


def spread_price(*openings: list[float]) -> Tensor:
    """Of gates on four cells in a row, for 0.4; of their features one channel varies: 2, 2, 2 and 6, mean 3.

    The squared distances from the mean are 1, 1, 1 and 9: the last cell has 9 of 12 parts of the weight.
    """
    model = HAttNetModel(HAttNetConfig(queries=2, channels=4, depth=3, spread_penalty=0.4))
    features = torch.stack([torch.tensor([[2.0, 2.0, 2.0, 6.0]]), torch.full((1, 4), 5.0)])[None]  # (1,2,1,4)
    gates = zip(model.gates, openings, strict=True)
    return model._price({name: Act(weights=torch.tensor([[opening]]), values=features) for name, opening in gates})


def test_the_price_of_an_even_gate_by_hand(assert_near: Near) -> None:
    """Open on the cell that stands out: (1/4) / √(9/12); on another: (1/4) / √(1/12); the stages count alike."""
    even, there, elsewhere = [0.03] * 4, [0.0, 0.0, 0.0, 0.9], [0.9, 0.0, 0.0, 0.0]
    assert_near(spread_price(even, even), [0.4])
    assert_near(spread_price(there, [0.001 * opening for opening in there]), [0.4 * 0.25 / 0.75**0.5])
    assert_near(spread_price(elsewhere, elsewhere), [0.4 * 0.25 * 12**0.5])
    assert_near(spread_price(even, there), [0.2 + 0.2 * 0.25 / 0.75**0.5])
    assert_near(spread_price([0.0] * 4, [0.0] * 4), [0.0])
