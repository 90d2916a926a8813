"""EfficientNet-Lite: padded as where its weights were trained, and the same numbers as its publisher's own network."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.backbones import Stages, build_backbone
from saccade.backbones.mobile import SCALES, EvenSameConv2d, efficientnet_lite, efficientnet_lite_key
from saccade.backbones.pretrained import load_imagenet
from saccade.errors import DataError

NAME = "efficientnet-lite0"
NAMES = (NAME, "efficientnet-lite1", "efficientnet-lite2")


def tensorflow_same(features: Tensor, weight: Tensor, stride: int, groups: int) -> Tensor:
    """A convolution with TensorFlow's "same" padding, which is worked out from the size of ``features``."""
    kernel = weight.shape[-1]
    sides = [max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in features.shape[-2:]]
    (top, bottom), (left, right) = ((total // 2, total - total // 2) for total in sides)
    return F.conv2d(F.pad(features, (left, right, top, bottom)), weight, stride=stride, groups=groups)


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (5, 1), (3, 2), (5, 2)])
@pytest.mark.parametrize("size", [(8, 8), (12, 6)])
def test_padding_is_tensorflows_where_the_stride_divides(
    kernel: int, stride: int, size: geometry.Size, assert_near: Callable[..., None]
) -> None:
    layer = EvenSameConv2d(4, 6, kernel, stride, groups=2)
    features = torch.randn(2, 4, *size)
    assert_near(layer(features), tensorflow_same(features, layer.weight, stride, groups=2))


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


def real(name: str) -> Stages:
    """The backbone ``name`` with its published weights; a test is skipped where they are not."""
    backbone = build_backbone(name).eval()
    try:
        load_imagenet(backbone, name)
    except DataError:
        pytest.skip(f"needs: saccade data get {name}-imagenet")
    return backbone


def patterned(height: int, width: int) -> Tensor:
    """A picture (1,3,H,W) that anybody can make again, byte by byte."""
    rows, columns = torch.arange(height).view(-1, 1), torch.arange(width)
    channels = [3 * rows + 5 * columns, rows * columns, rows * rows + 7 * columns]
    return torch.stack([channel % 256 for channel in channels]).unsqueeze(0) / 255


CHANNELS = ((245, 971, 949, 1115, 315), (737, 289, 881, 353, 830), (5, 608, 121, 1059, 289))


@pytest.mark.parametrize(
    ("version", "size", "pooled", "cells"),
    [
        (0, (224, 224), [5.06455, 4.88705, 4.54043, 4.20116, 4.14162], [1.70249, 4.23243, 5.58241, 3.95250]),
        (0, (135, 97), [6.00000, 4.81515, 5.35715, 5.94023, 5.85650], [0.52615, 1.95786, 2.25638, 5.04141]),
        (1, (240, 240), [5.12564, 3.70530, 3.65603, 3.00126, 2.93869], [0.00000, 1.69593, 4.63512, 4.08630]),
        (1, (135, 97), [5.21585, 4.23371, 3.42747, 3.52335, 4.70146], [0.21621, 2.60987, 3.80417, 2.83823]),
        (2, (260, 260), [3.30831, 2.13264, 3.11189, 2.89595, 2.66444], [0.00000, 0.44454, 1.54133, 0.42177]),
        (2, (135, 97), [5.21016, 5.11736, 3.71728, 2.27045, 4.45672], [2.69556, 4.51603, 5.64178, 5.43288]),
    ],
)
def test_features_are_those_of_the_publishers_own_code(
    version: int, size: geometry.Size, pooled: list[float], cells: list[float], assert_near: Callable[..., None]
) -> None:
    """Numbers that the package efficientnet-lite-pytorch 0.1.0 gave for the same picture and file."""
    with torch.no_grad():
        features = real(NAMES[version])(patterned(*size))[0]  # (1280,h,w)
    assert_near(features.mean((1, 2))[list(CHANNELS[version])], pooled, rtol=0, atol=1e-4)
    assert_near(features[CHANNELS[version][1]].flatten()[:4], cells, rtol=0, atol=1e-4)
