"""Backbones: stages lie where their frames say; blocks by hand; maps of several stages as one; EfficientNet-Lite."""

from collections import OrderedDict
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from layer_probe import gradient_centre, made_linear
from saccade import geometry
from saccade.backbones import Stages, build_backbone, small_stack
from saccade.backbones.convnets import compact, resnet, vgg
from saccade.backbones.mobile import (
    SCALES,
    InvertedResidual,
    efficientnet_lite,
    efficientnet_lite_key,
    mobilenet_v2,
)
from saccade.backbones.stages import (
    HalvingPool,
    finer_stages,
    folded,
    folded_channels,
    fuse_norms,
    levels_of,
    unfolded,
)
from saccade.errors import ConfigError, DataError

# A backbone joins by a line here: name → how it is built for a test, and a picture large enough to have an inside.
BACKBONES: dict[str, tuple[Callable[[], Stages], geometry.Size]] = {
    "small_stack": (lambda: small_stack(channels=2), (155, 149)),
    "small_stack, three deep": (lambda: small_stack(channels=2, depth=3), (97, 110)),
    "strided and padded": (
        lambda: Stages(
            OrderedDict(
                stem=nn.Sequential(nn.Conv2d(3, 2, 7, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)),
                body=nn.Sequential(nn.Conv2d(2, 2, 3, 2, 1), nn.SiLU(), nn.Conv2d(2, 2, 3, dilation=2)),
            ),
            {"stem": 2, "body": 2},
        ),
        (180, 171),
    ),
    "build_backbone, the small stack": (lambda: build_backbone("small", channels=2, depth=2), (61, 70)),
    # Receptive fields are large: 435 pixels of a ResNet-18, 899 of a ResNet-34, 483 of a ResNet-50, 491 of a
    # MobileNetV2, 403 of an EfficientNet-Lite0 up to its last stride, 123 of a Lite2 up to its fourth, 212 of a VGG-16,
    # 268 of a VGG-19; narrow ones look where wide ones do.
    "resnet18": (lambda: resnet(18, width=2), (500, 503)),
    "resnet50": (lambda: resnet(50, width=2), (550, 549)),
    "vgg16": (lambda: vgg(16, width=2), (280, 277)),
    "vgg19": (lambda: vgg(19, width=2), (333, 336)),
    "mobilenetv2": (lambda: mobilenet_v2(width=0.1), (559, 562)),
    "efficientnet-lite0, to its last stride": (lambda: efficientnet_lite(0, width=0.1).through("block12"), (470, 467)),
    "efficientnet-lite2, to its fourth stride": (lambda: efficientnet_lite(2, width=0.1).through("block8"), (190, 187)),
    "compact": (compact, (163, 158)),
    "compact, with finer cells": (lambda: compact(last_stride=1), (163, 158)),
    "compact, with nearer cells": (lambda: compact(last_kernel=1), (163, 158)),
}
every_backbone = pytest.mark.parametrize(("build", "size"), BACKBONES.values(), ids=BACKBONES)


@every_backbone
def test_frames_are_where_the_gradient_is(build: Callable[[], Stages], size: geometry.Size) -> None:
    """The centre of mass of ∂cell/∂image is the centre that the stage's frame tells, for an inner cell."""
    backbone = build()
    linear = made_linear(backbone)
    images = torch.zeros(1, 3, *size, dtype=torch.float64, requires_grad=True)
    features, before = images, None
    for name in backbone.names:
        features, before = linear.between(features, after=before, to=name), name
        row, column = features.shape[-2] // 2, features.shape[-1] // 2
        expected = geometry.apply(backbone.frames[name], torch.tensor([column + 0.5, row + 0.5]))
        centre = gradient_centre(images, features, row, column)
        assert centre == pytest.approx(tuple(expected.tolist()), abs=1e-3), name


@every_backbone
def test_the_grid_is_told_without_running(build: Callable[[], Stages], size: geometry.Size) -> None:
    backbone = build().eval()
    told = backbone.grid(size)
    features = torch.rand(1, 3, *size)
    for name in backbone.names:
        at_stage = backbone.between(features, to=name)
        assert tuple(at_stage.shape) == (1, backbone.channels[name], *told[name])


@every_backbone
def test_fused_norms_change_the_last_bits_alone(build: Callable[[], Stages], size: geometry.Size) -> None:
    torch.manual_seed(0)
    network = build().eval()
    for norm in (module for module in network.modules() if isinstance(module, nn.BatchNorm2d)):
        for tensor in (norm.weight.data, norm.running_var):
            tensor.uniform_(0.5, 1.5)
        for tensor in (norm.bias.data, norm.running_mean):
            tensor.normal_(0, 0.1)
    images = torch.rand(2, 3, *size)
    with torch.no_grad():
        before = network(images)
        fuse_norms(network)
        torch.testing.assert_close(network(images), before, rtol=1e-4, atol=1e-4 * float(before.abs().max()))
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


@pytest.mark.parametrize("size", [(8, 8), (7, 9), (2, 3)])
def test_pooling_for_inference_is_the_same_to_the_last_bit(size: geometry.Size) -> None:
    """Whether channels lie together or not; an odd border is dropped, and NaN stays NaN."""
    features = torch.randn(3, 5, *size)
    features[1, 2, 0, 1] = torch.nan
    expected = nn.functional.max_pool2d(features, 2)
    assert expected.isnan().sum() == 1
    with torch.inference_mode():
        for memory in (torch.contiguous_format, torch.channels_last):
            result = HalvingPool()(features.contiguous(memory_format=memory))
            torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("size", "stage"), [((100, 20), "stage3"), ((2, 100), "stage1"), ((3, 3), "stage1")])
def test_a_picture_that_is_too_small(size: geometry.Size, stage: str) -> None:
    with pytest.raises(DataError, match=f"{size[0]}×{size[1]} pixels is too small for stage '{stage}'"):
        small_stack().grid(size)


def test_a_layer_that_hides_its_geometry_is_refused_when_built() -> None:
    with pytest.raises(ConfigError, match="AdaptiveAvgPool2d"):
        Stages(OrderedDict(stem=nn.AdaptiveAvgPool2d(4)), {"stem": 3})


def test_an_inverted_residual_adds_only_where_it_can() -> None:
    features = torch.randn(1, 8, 6, 6)
    same = InvertedResidual(8, 8, 1, 6).eval()
    nn.init.zeros_(same.conv[-1].weight)
    assert torch.equal(same(features), features)
    for other in (InvertedResidual(8, 16, 1, 6), InvertedResidual(8, 8, 2, 6)):
        nn.init.zeros_(other.conv[-1].weight)
        assert other.eval()(features).abs().max() == 0


def test_maps_come_back_as_they_were() -> None:
    stages = build_backbone("compact").eval()
    finer = finer_stages(stages, (64, 96))
    levels = levels_of(stages, finer)
    assert [level.name for level in levels] == ["layer2", "layer3", "layer4"]
    images = torch.rand(2, 3, 64, 96)
    with torch.no_grad():
        together = folded(stages, images, levels)
        each = [stages.between(images, to=level.name) for level in levels]
        below = folded(stages, images, levels, finer_only=True)
    assert together.shape == (2, folded_channels(levels), *each[-1].shape[-2:])
    assert torch.equal(below, together[:, : below.shape[1]])
    for result, wanted in zip(unfolded(together, levels), each, strict=True):
        assert torch.equal(result, wanted)


def test_a_pyramid_takes_the_last_stage_of_each_resolution() -> None:
    stages = build_backbone("mobilenetv2")
    assert finer_stages(stages, (224, 224)) == ("block6", "block13")
    assert [level.factor for level in levels_of(stages, ("block6", "block13"))] == [4, 2, 1]
    assert finer_stages(stages, (200, 200)) == ()  # 25, 13 and 7 cells do not fit into each other
    assert finer_stages(build_backbone("mobilenetv2", through="block13"), (640, 640)) == ()  # 80 cells are too many


def tensorflow_same(features: Tensor, weight: Tensor, stride: int, groups: int) -> Tensor:
    """A convolution with TensorFlow's "same" padding, which is worked out from the size of ``features``."""
    kernel = weight.shape[-1]
    sides = [max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in features.shape[-2:]]
    (top, bottom), (left, right) = ((total // 2, total - total // 2) for total in sides)
    return F.conv2d(F.pad(features, (left, right, top, bottom)), weight, stride=stride, groups=groups)


STRIDED = ((1, 3, 5, 11), *[(1, 4, 7, 15)] * 2)
"""The blocks that halve the grid in Lite0, Lite1 and Lite2, as their publisher counts, from nought."""


def published_features(raw: dict[str, Tensor], images: Tensor, version: int = 0) -> Tensor:
    """What the publisher's layers do to RGB 0..1, written out from their names and padded by TensorFlow's rule."""

    def norm(features: Tensor, name: str) -> Tensor:
        numbers = [raw[f"{name}.{kind}"] for kind in ("running_mean", "running_var", "weight", "bias")]
        return F.batch_norm(features, *numbers, eps=1e-3)

    def convolve(features: Tensor, name: str, stride: int = 1) -> Tensor:
        weight = raw[f"{name}.weight"]
        return tensorflow_same(features, weight, stride, groups=features.shape[1] // weight.shape[1])

    features = F.relu6(norm(convolve((255 * images - 127) / 128, "_conv_stem", 2), "_bn0"))
    for number in range(sum(name.endswith("._depthwise_conv.weight") for name in raw)):
        block, before = f"_blocks.{number}", features
        if f"{block}._expand_conv.weight" in raw:
            features = F.relu6(norm(convolve(features, f"{block}._expand_conv"), f"{block}._bn0"))
        stride = 2 if number in STRIDED[version] else 1
        features = F.relu6(norm(convolve(features, f"{block}._depthwise_conv", stride), f"{block}._bn1"))
        features = norm(convolve(features, f"{block}._project_conv"), f"{block}._bn2")
        if features.shape == before.shape:
            features = features + before
    return F.relu6(norm(convolve(features, "_conv_head"), "_bn1"))


def unlike_any_start(backbone: Stages) -> Stages:
    """``backbone`` with random weights and statistics in its norms, so that none of them does nothing."""
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.running_var):
                nn.init.uniform_(tensor, 0.5, 1.5)  # type: ignore[arg-type]
            for tensor in (module.bias, module.running_mean):
                nn.init.normal_(tensor, std=0.3)  # type: ignore[arg-type]
    return backbone.eval()


@pytest.mark.parametrize(("version", "cells"), [(0, 7), (1, 8), (2, 9)])
def test_pictures_of_the_trained_size_are_seen_as_in_training(
    version: int, cells: int, assert_near: Callable[..., None]
) -> None:
    """TensorFlow's own rule, which looks at every side on the way down, gives the same cells."""
    backbone = unlike_any_start(efficientnet_lite(version, width=0.2))
    raw = {efficientnet_lite_key(key): tensor for key, tensor in backbone.state_dict().items()}
    images = torch.rand(1, 3, SCALES[version].side, SCALES[version].side)
    with torch.no_grad():
        features = backbone(images)
        assert_near(features, published_features(raw, images, version), rtol=1e-4, atol=1e-4)
    assert features.shape == (1, 1280, cells, cells)
    assert features.std() > 0.1
