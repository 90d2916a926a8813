"""Weights files that are smaller than the model: half precision, and only what differs from the ImageNet weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from published_weights_fake import publish, withdraw
from saccade.backbones import pretrained
from saccade.config import to_dict
from saccade.errors import CheckpointError, MissingExtraError
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import load_model, save_model
from saccade.models.soft import SoftModel
from tiny_models import edit_config, tiny_config, tiny_facts


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
    assert facts.base is not None
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
