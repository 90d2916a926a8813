"""Weights files that are smaller than the model: half precision, whole numbers, and only what training changed."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, load_file
from torch import Tensor

from saccade.backbones import pretrained
from saccade.config import to_dict
from saccade.errors import CheckpointError, MissingExtraError
from saccade.models.facts import ModelFacts, Preprocessing, Score, read_facts
from saccade.models.folder import from_rows, has_rows, load_model, save_model, store_as, to_rows
from saccade.models.soft import SoftModel
from tiny_models import change_weights, edit_config, publish, save_tiny, tiny_config, tiny_facts, tiny_model, withdraw


def written(folder: Path) -> dict[str, torch.Tensor]:
    return load((folder / "model.safetensors").read_bytes())


DEEP_BACKBONES = ["mobilenetv2", "efficientnet-lite0"]


def deep_model(backbone: str = "mobilenetv2") -> SoftModel:
    """Started from the published weights; then its last block, one norm's statistics and the head have learnt."""
    torch.manual_seed(0)
    sizes = tiny_config(SoftModel, backbone=backbone, pretrained=True, through="block4")
    model = SoftModel(sizes)
    model.load_pretrained()
    with torch.no_grad():
        for parameter in model.backbone.stages["block4"].parameters():
            parameter.add_(0.25)
        model.backbone.stages["block3"].conv[3].running_mean.add_(1)  # type: ignore[index, union-attr, operator]
    return model


def deep_facts(model: SoftModel, **changes: object) -> ModelFacts:
    return tiny_facts(model=to_dict(model.config), preprocessing=Preprocessing((64, 64)), **changes)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    publish(monkeypatch)
    model = deep_model()
    save_model(model, tmp_path / "deep", deep_facts(model))
    return tmp_path / "deep"


@pytest.mark.parametrize("backbone", DEEP_BACKBONES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_only_what_differs_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, backbone: str
) -> None:
    weights = publish(monkeypatch, backbone=backbone)
    model = deep_model(backbone)
    facts = save_model(model, tmp_path / "m", deep_facts(model, dtype=dtype))
    names = {name.removesuffix(".scale") for name in written(tmp_path / "m")}
    assert "backbone.stages.block3.conv.3.running_mean" in names
    assert "backbone.stages.block3.conv.3.running_var" not in names
    assert {name for name in names if name.startswith("backbone")} == {
        "backbone.stages.block3.conv.3.running_mean",
        *(f"backbone.stages.block4.{name}" for name, _ in model.backbone.stages["block4"].named_parameters()),
    }
    assert (facts.base.backbone, facts.base.sha256) == (backbone, pretrained.weights_digest(backbone))
    loaded, read = load_model(tmp_path / "m")
    assert read == facts
    state = loaded.state_dict()
    for name, tensor in model.state_dict().items():
        if name.removeprefix("backbone.") in weights and name not in names:
            assert torch.equal(state[name], weights[name.removeprefix("backbone.")])
        rounding = {"float32": 0.0, "float16": 1e-3 * tensor.abs(), "int8": tensor.abs().max() / 127}[dtype]
        assert bool(((state[name] - tensor).abs() <= rounding + 1e-7).all()), name
    if dtype == "float32":
        images, query = torch.rand(2, 3, 64, 64), torch.tensor([0, 1])
        assert torch.equal(loaded(images, query).logits, model.eval()(images, query).logits)


def test_other_published_weights_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(monkeypatch, seed=8)
    with pytest.raises(CheckpointError, match="other ImageNet weights of 'mobilenetv2'"):
        load_model(folder)


def test_missing_published_weights_are_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    withdraw(monkeypatch)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: .* saccade data"):
        load_model(folder)

    def no_timm(name: str) -> dict[str, torch.Tensor]:
        raise MissingExtraError("a timm backbone", "timm")

    monkeypatch.setattr(pretrained, "imagenet_weights", no_timm)
    with pytest.raises(MissingExtraError, match=r"saccade-attention\[timm\]"):
        load_model(folder)


def test_without_published_weights_everything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes on where they are not must not lose its model."""
    publish(monkeypatch)
    model = deep_model()
    withdraw(monkeypatch)
    facts = save_model(model, tmp_path / "m", deep_facts(model))
    assert facts.base is None
    assert set(written(tmp_path / "m")) == set(model.state_dict())
    load_model(tmp_path / "m")  # needs none either


def test_a_base_of_another_backbone_is_refused(folder: Path) -> None:
    edit_config(folder, base={"backbone": "vgg16", "sha256": "ab" * 32})
    with pytest.raises(CheckpointError, match="vgg16"):
        load_model(folder)
    edit_config(folder, base=None)
    with pytest.raises(CheckpointError, match=r"no tensor 'backbone\.stages\.block0"):
        load_model(folder)


WEIGHTS = "model.safetensors"
NAME, BIAS = "head.classify.weight", "head.classify.bias"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "tiny", dtype="int8")


def test_parameters_with_rows_are_bytes_and_the_others_half(tiny: Path, tmp_path: Path) -> None:
    written, (model, facts) = load_file(tiny / WEIGHTS), load_model(tiny)
    whole = load_file(save_tiny(tmp_path / "whole") / WEIGHTS)
    parameters = {name for name, _ in model.named_parameters()}
    rounded = {name for name in parameters if has_rows(whole[name].shape)}
    assert facts.dtype == "int8"
    assert NAME in rounded < parameters
    assert set(written) == set(whole) | {f"{name}.scale" for name in rounded}
    for name, result in model.state_dict().items():
        assert result.dtype == whole[name].dtype
        if name in rounded:
            assert written[name].dtype == torch.int8
            assert torch.equal(result, from_rows(*to_rows(whole[name])))
        elif name in parameters:
            assert written[name].dtype == torch.float16
            assert torch.equal(result, whole[name].half().float())
        else:  # statistics stay as they are
            assert torch.equal(result, whole[name])
    assert "int8" in (tiny / "card.md").read_text()


def test_what_a_byte_cannot_hold_is_named(tmp_path: Path) -> None:
    model = tiny_model(SoftModel)
    model.head.classify.bias.data[0] = 1e6
    with pytest.raises(CheckpointError, match=r"'head\.classify\.bias' .* int8"):
        save_model(model, tmp_path / "m", tiny_facts(dtype="int8"))
    model.head.classify.bias.data[0] = 0
    model.get_parameter(NAME).data[0, 0] = torch.finfo(torch.float32).max  # rows may be as large as they like
    save_model(model, tmp_path / "m", tiny_facts(dtype="int8"))
    load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda held: held.pop(f"{NAME}.scale"), f"{NAME}.scale"),
        (lambda held: held.update({NAME: held[NAME][:, :7].contiguous()}), NAME),
        (lambda held: held.update({f"{NAME}.scale": torch.ones(3)}), f"{NAME}.scale"),
        (lambda held: held[f"{NAME}.scale"].fill_(torch.nan), NAME),
        (lambda held: held.update({f"{BIAS}.scale": torch.ones(3).bfloat16()}), f"{BIAS}.scale"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_named(tiny: Path, change: Callable[[dict[str, Tensor]], object], name: str) -> None:
    load_model(tiny)
    change_weights(tiny, change)
    with pytest.raises(CheckpointError, match=f"'{re.escape(name)}'"):
        load_model(tiny)


def test_stored_in_another_type_it_is_what_it_would_have_been(tmp_path: Path) -> None:
    scored = save_tiny(tmp_path / "run", scores=(Score("mref", "test", 10, metrics={"accuracy": 0.5}),))
    facts = store_as(scored, "int8")
    assert read_facts(scored) == facts
    assert (facts.dtype, facts.scores) == ("int8", ())  # the score was of other weights
    assert facts.sha256 == read_facts(save_tiny(tmp_path / "from-the-start", dtype="int8")).sha256
    assert store_as(scored, "int8").sha256 == facts.sha256
    assert store_as(scored, "float32").sha256 != facts.sha256
    assert store_as(scored, "int8").sha256 == facts.sha256  # what is wider holds it too


def test_numbers_and_scales_by_hand() -> None:
    rows = to_rows(torch.tensor([[127.0, -63.5, 0.4, 0.6], [0.0, 0.5, -31.75, 0.1]]))
    assert rows[0].dtype == torch.int8
    assert rows[1].dtype == torch.bfloat16
    assert rows[1].tolist() == [1.0, 0.25]
    assert rows[0].tolist() == [[127, -64, 0, 1], [0, 2, -127, 0]]  # half a step goes to the even number
    assert from_rows(*rows).tolist() == [[127, -64, 0, 1], [0, 0.5, -31.75, 0]]


def test_rows_of_zeros_and_of_almost_nothing_are_zeros() -> None:
    rows = to_rows(torch.tensor([[0.0, -0.0, 0.0], [1e-37, 0.0, -1e-38], [2e-36, 0.0, -5e-37]]))
    assert rows[1][:2].tolist() == [0, 0]
    assert rows[0].tolist() == [[0, 0, 0], [0, 0, 0], [127, 0, -32]]
