"""Backbones: every stage of every one lies where its frame says, and small pictures are refused with words."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable

import pytest
import torch
from torch import nn

from layer_probe import gradient_centre, made_linear
from saccade import backbones, geometry
from saccade.backbones import Stages, build_backbone, small_stack
from saccade.backbones.mobile import efficientnet_lite, mobilenet_v2
from saccade.backbones.plain import HalvingPool, vgg
from saccade.backbones.resnet import compact, resnet
from saccade.backbones.stages import fold_norms
from saccade.errors import ConfigError, DataError

# A backbone joins by a line here: name → how it is built for a test, and a picture large enough to have an inside.
BACKBONES: dict[str, tuple[Callable[[], Stages], geometry.Size]] = {
    "small_stack": (lambda: small_stack(channels=2), (155, 149)),
    "small_stack, grey, three deep": (lambda: small_stack(channels=2, depth=3, in_channels=1), (97, 110)),
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


def test_every_builder_of_the_package_is_probed() -> None:
    builders = {name for name in backbones.__all__ if inspect.isfunction(getattr(backbones, name))}
    probed = {name.partition(",")[0] for name in BACKBONES}
    assert builders <= probed, f"add to BACKBONES: {', '.join(sorted(builders - probed))}"


@every_backbone
def test_frames_are_where_the_gradient_is(build: Callable[[], Stages], size: geometry.Size) -> None:
    """The centre of mass of ∂cell/∂image is the centre that the stage's frame tells, for an inner cell."""
    backbone = build()
    linear = made_linear(backbone)
    images = torch.zeros(1, backbone.in_channels, *size, dtype=torch.float64, requires_grad=True)
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
    features = torch.rand(1, backbone.in_channels, *size)
    for name in backbone.names:
        at_stage = backbone.between(features, to=name)
        assert tuple(at_stage.shape) == (1, backbone.channels[name], *told[name])


@every_backbone
def test_stages_in_parts_are_the_whole(build: Callable[[], Stages], size: geometry.Size) -> None:
    backbone = build().eval()
    images = torch.rand(2, backbone.in_channels, *size)
    first = backbone.names[0]
    in_parts = backbone.between(backbone.between(images, to=first), after=first)
    assert torch.equal(in_parts, backbone(images))


@every_backbone
def test_folded_norms_change_the_last_bits_alone(build: Callable[[], Stages], size: geometry.Size) -> None:
    torch.manual_seed(0)
    network = build().eval()
    for norm in (module for module in network.modules() if isinstance(module, nn.BatchNorm2d)):
        for tensor in (norm.weight.data, norm.running_var):
            tensor.uniform_(0.5, 1.5)
        for tensor in (norm.bias.data, norm.running_mean):
            tensor.normal_(0, 0.1)
    images = torch.rand(2, network.in_channels, *size)
    with torch.no_grad():
        before = network(images)
        fold_norms(network)
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
            found = HalvingPool()(features.contiguous(memory_format=memory))
            torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("size", "stage"), [((100, 20), "stage3"), ((2, 100), "stage1"), ((3, 3), "stage1")])
def test_a_picture_that_is_too_small(size: geometry.Size, stage: str) -> None:
    with pytest.raises(DataError, match=f"{size[0]}×{size[1]} pixels is too small for stage '{stage}'"):
        small_stack().grid(size)


def test_an_unknown_stage_names_the_nearest() -> None:
    assert small_stack().check_stage("stage2") == "stage2"


def test_a_layer_that_hides_its_geometry_is_refused_when_built() -> None:
    with pytest.raises(ConfigError, match="AdaptiveAvgPool2d"):
        Stages(OrderedDict(stem=nn.AdaptiveAvgPool2d(4)), {"stem": 3})
