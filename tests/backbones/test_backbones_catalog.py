"""The catalog of backbones: what it says is what is built, and wrong names are answered with the nearest."""

from __future__ import annotations

import pytest
import torch

from saccade.backbones import build_backbone
from saccade.backbones.catalog import BACKBONES, has_imagenet_weights
from saccade.backbones.pretrained import imagenet_weights
from saccade.config import from_dict
from saccade.errors import ConfigError
from saccade.families import model_spec

# Kernels of 3×3 and 1×1, and two numbers a channel for each norm.
COMPACT = (
    9 * (3 * 24 + 2 * 24 * 24 + (24 + 48) * 48 + (48 + 96) * 96 + (96 + 128) * 128)
    + (24 * 48 + 48 * 96 + 96 * 128)
    + 2 * (3 * 24 + 3 * 48 + 3 * 96 + 3 * 128)
)
# What the papers and the published files have, counted without classifiers.
PARAMETERS = {
    "small": (3 * 9 + 1) * 32 + 3 * (32 * 9 + 1) * 32,
    "compact": COMPACT,
    "compact-fine": COMPACT,
    "compact-near": COMPACT - 8 * (96 + 128) * 128,
    "compact-deep": COMPACT + 2 * 9 * (48 * 48 + 96 * 96) + 2 * 2 * (48 + 96),
    "resnet18": 11_689_512 - 513_000,
    "resnet34": 21_797_672 - 513_000,
    "resnet50": 25_557_032 - 2_049_000,
    "vgg16": 14_714_688,
    "vgg19": 20_024_384,
    "mobilenetv2": 3_504_872 - 1_281_000,
    "efficientnet-lite0": 4_652_008 - 1_281_000,
    "efficientnet-lite1": 5_416_680 - 1_281_000,
    "efficientnet-lite2": 6_092_072 - 1_281_000,
}
# The maps that recipes attend to, for a picture of 224 × 224: (channels, side).
every_name = pytest.mark.parametrize("name", BACKBONES)


@every_name
def test_the_catalog_says_what_is_built(name: str) -> None:
    backbone = build_backbone(name)
    assert backbone.names == BACKBONES[name].stages
    assert sum(parameter.numel() for parameter in backbone.parameters()) == PARAMETERS[name]
    assert set(backbone.channels) == set(backbone.frames) == set(backbone.names)


def test_through_keeps_the_first_stages() -> None:
    """Same layers, same places, same numbers; only what comes behind is gone."""
    whole = build_backbone("resnet18").eval()
    short = whole.through("layer2")
    assert short.names == ("stem", "layer1", "layer2")
    assert short.channels == {"stem": 64, "layer1": 64, "layer2": 128}
    assert torch.equal(short.frames["layer2"], whole.frames["layer2"])
    images = torch.rand(1, 3, 64, 64)
    assert torch.equal(short(images), whole.between(images, to="layer2"))
    assert build_backbone("vgg19", through="conv5").names[-1] == "conv5"
    assert short.state_dict().keys() < whole.state_dict().keys()


@pytest.mark.parametrize(
    ("name", "through", "message"),
    [
        ("resnet43", None, r"no backbone 'resnet43': did you mean 'resnet34'.*timm:NAME"),
        ("mobilenetv2", "block18", "no stage 'block18' in this backbone: did you mean 'block"),
        (
            "resnet34",
            "block13",
            "through: no stage 'block13'.*choose from layer1, .*stem; in a recipe .*config.through",
        ),
    ],
)
def test_wrong_names(name: str, through: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_backbone(name, through=through)


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("resnet18", "stages.layer2.0.downsample.1.running_mean", "layer2.0.downsample.1.running_mean"),
        ("resnet50", "stages.layer4.2.bn3.bias", "layer4.2.bn3.bias"),
        ("vgg19", "stages.conv5.34.bias", "features.34.bias"),
        ("mobilenetv2", "stages.block1.conv.1.weight", "features.1.conv.1.weight"),
        ("mobilenetv2", "stages.block17.conv.3.running_var", "features.17.conv.3.running_var"),
        ("efficientnet-lite0", "stages.block1.conv.0.0.weight", "_blocks.0._depthwise_conv.weight"),
        ("efficientnet-lite0", "stages.block1.conv.2.bias", "_blocks.0._bn2.bias"),
        ("efficientnet-lite0", "stages.block2.conv.0.1.running_mean", "_blocks.1._bn0.running_mean"),
        ("efficientnet-lite0", "stages.block16.conv.2.weight", "_blocks.15._project_conv.weight"),
        ("efficientnet-lite2", "stages.block21.conv.1.0.weight", "_blocks.20._depthwise_conv.weight"),
    ],
)
def test_published_names(name: str, ours: str, theirs: str) -> None:
    assert ours in build_backbone(name).state_dict()
    assert BACKBONES[name].published_key(ours) == theirs


@pytest.mark.parametrize("name", [*BACKBONES, "timm:resnet18", "hf:google/vit", "features:maps"])
def test_one_function_decides_who_has_published_weights(name: str) -> None:
    """Every model that takes ``pretrained`` asks it, and what it refuses cannot be loaded either."""
    has = not name.startswith(("small", "compact", "features:"))
    assert has_imagenet_weights(name) is has
    models = {"soft": {}, "hsal": {}, "sat-soft": {"vocabulary": 9}, "racnn": {}, "probe": {}}
    for model, settings in models.items():
        kind = model_spec(model).load().Config
        given = {**settings, "backbone": name, "pretrained": True}
        if has:
            from_dict(kind, given)
            continue
        with pytest.raises(
            ConfigError, match=f"^model.config: pretrained: '{name}' has no ImageNet weights; .* mobilenetv2, .*hf:NAME"
        ):
            from_dict(kind, given, where="model.config")
        with pytest.raises(ConfigError, match="no ImageNet weights"):
            imagenet_weights(name)
