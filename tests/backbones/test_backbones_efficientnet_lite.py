"""EfficientNet-Lite0: padded as where its weights were trained, and the same numbers as its publisher's own network."""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from saccade import geometry
from saccade.backbones import Stages, build_backbone, pretrained
from saccade.backbones.efficientnet_lite import EvenSameConv2d, efficientnet_lite0, published_name
from saccade.backbones.pretrained import imagenet_weights, load_imagenet
from saccade.backbones.torch_file import read_torch_file
from saccade.cache import WEIGHTS, cache_home
from saccade.errors import DataError

NAME = "efficientnet-lite0"

# ---------------------------------------------------------------- padding


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


def test_a_row_of_six_by_hand() -> None:
    """Windows of 3 begin at 0, 2, 4 and of 5 at −1, 1, 3: both are centred at pixels 1, 3, 5; zeros lie behind."""
    row = torch.arange(1.0, 7.0).view(1, 1, 1, 6).expand(1, 1, 2, 6)
    sums = {}
    for kernel in (3, 5):
        layer = EvenSameConv2d(1, 1, kernel, 2)
        nn.init.zeros_(layer.weight)
        nn.init.ones_(layer.weight[:, :, (kernel - 1) // 2 - 1])  # the first of the two rows
        sums[kernel] = layer(row).flatten().tolist()
        assert geometry.frame_through(layer).tolist() == [[2.0, 0.0, 0.5], [0.0, 2.0, 0.5]]
    assert sums == {3: [1 + 2 + 3, 3 + 4 + 5, 5 + 6], 5: [1 + 2 + 3 + 4, 2 + 3 + 4 + 5 + 6, 4 + 5 + 6]}


@pytest.mark.parametrize("size", [7, 8])
@pytest.mark.parametrize("kernel", [3, 5])
def test_every_pixel_is_seen(kernel: int, size: int) -> None:
    """Odd sides are rounded down, yet the last window reaches the last pixel."""
    layer = EvenSameConv2d(1, 1, kernel, 2)
    nn.init.ones_(layer.weight)
    pixels = torch.zeros(1, 1, size, size, requires_grad=True)
    cells = layer(pixels)
    assert cells.shape[-2:] == (size // 2, size // 2)
    cells.sum().backward()
    assert pixels.grad is not None
    assert pixels.grad.min() > 0


# ---------------------------------------------------------------- the network


def test_pictures_are_centred_by_bytes(assert_near: Callable[..., None]) -> None:
    """(byte − 127) / 128: byte 127 is nought, 255 is one, 0 is −127/128."""
    normalise = build_backbone(NAME, through="block0").stages["block0"].get_submodule("normalise")
    pixels = torch.tensor([127.0, 255.0, 0.0]).div(255).view(1, 1, 1, 3).expand(1, 3, 1, 3)
    assert_near(normalise(pixels)[0, 1, 0], [0.0, 1.0, -127 / 128])


def test_norms_divide_as_the_publishers_do() -> None:
    norms = [module for module in build_backbone(NAME).modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) == 2 + 2 + 3 * 15  # stem and head, the block that does not widen, the others
    assert {norm.eps for norm in norms} == {1e-3}
    assert build_backbone("mobilenetv2").get_submodule("stages.head.1").eps == 1e-5  # whose blocks are the same


@pytest.mark.parametrize(
    ("size", "last"),
    [((224, 224), (7, 7)), ((225, 223), (7, 6)), ((100, 131), (3, 4)), ((63, 32), (1, 1))],
)
def test_sides_are_halved_and_rounded_down_five_times(size: geometry.Size, last: geometry.Size) -> None:
    grid = build_backbone(NAME).grid(size)
    assert grid["head"] == last
    assert grid["block11"] == (size[0] // 16, size[1] // 16)


def test_a_picture_that_is_too_small() -> None:
    with pytest.raises(DataError, match="31×40 pixels is too small for stage 'block12'"):
        build_backbone(NAME).grid((31, 40))


def test_cells_of_the_last_grids_by_hand() -> None:
    """Each halving puts cell x at 2x + 0.5; after four, 16x + 7.5: the first of 14 cells is centred at 15.5."""
    backbone = build_backbone(NAME)
    first = torch.tensor([0.5, 0.5], dtype=torch.float64)
    assert geometry.apply(backbone.frames["block11"], first).tolist() == [15.5, 15.5]
    assert geometry.apply(backbone.frames["head"], first).tolist() == [31.5, 31.5]


def published_features(raw: dict[str, Tensor], images: Tensor) -> Tensor:
    """What the publisher's layers do to RGB 0..1, written out from their names and padded by TensorFlow's rule."""

    def norm(features: Tensor, name: str) -> Tensor:
        numbers = [raw[f"{name}.{kind}"] for kind in ("running_mean", "running_var", "weight", "bias")]
        return F.batch_norm(features, *numbers, eps=1e-3)

    def convolve(features: Tensor, name: str, stride: int = 1) -> Tensor:
        weight = raw[f"{name}.weight"]
        return tensorflow_same(features, weight, stride, groups=features.shape[1] // weight.shape[1])

    features = F.relu6(norm(convolve((255 * images - 127) / 128, "_conv_stem", 2), "_bn0"))
    for number in range(16):
        block, before = f"_blocks.{number}", features
        if f"{block}._expand_conv.weight" in raw:
            features = F.relu6(norm(convolve(features, f"{block}._expand_conv"), f"{block}._bn0"))
        stride = 2 if number in (1, 3, 5, 11) else 1
        features = F.relu6(norm(convolve(features, f"{block}._depthwise_conv", stride), f"{block}._bn1"))
        features = norm(convolve(features, f"{block}._project_conv"), f"{block}._bn2")
        if features.shape == before.shape:
            features = features + before
    return F.relu6(norm(convolve(features, "_conv_head"), "_bn1"))


def test_it_computes_what_its_publisher_computes(assert_near: Callable[..., None]) -> None:
    """With random weights and statistics, on a picture that all strides divide."""
    backbone = efficientnet_lite0(width=0.3).eval()
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.running_var):
                nn.init.uniform_(tensor, 0.5, 1.5)  # type: ignore[arg-type]
            for tensor in (module.bias, module.running_mean):
                nn.init.normal_(tensor, std=0.3)  # type: ignore[arg-type]
    raw = {published_name(key): tensor for key, tensor in backbone.state_dict().items()}
    images = torch.rand(2, 3, 64, 96)
    with torch.no_grad():
        features = backbone(images)
        assert_near(features, published_features(raw, images), rtol=1e-4, atol=1e-4)
    assert features.shape == (2, 1280, 2, 3)
    assert features.std() > 0.1


# ---------------------------------------------------------------- the real weights, where they are


@pytest.fixture(scope="module")
def real() -> Stages:
    backbone = build_backbone(NAME).eval()
    try:
        load_imagenet(backbone, NAME)
    except DataError:
        pytest.skip(f"needs: saccade data get {NAME}-imagenet")
    return backbone


def patterned(height: int, width: int) -> Tensor:
    """A picture (1,3,H,W) that anybody can make again, byte by byte."""
    rows, columns = torch.arange(height).view(-1, 1), torch.arange(width)
    channels = [3 * rows + 5 * columns, rows * columns, rows * rows + 7 * columns]
    return torch.stack([channel % 256 for channel in channels]).unsqueeze(0) / 255


@pytest.mark.parametrize(
    ("size", "pooled", "cells"),
    [
        ((224, 224), [5.06455, 4.88705, 4.54043, 4.20116, 4.14162], [1.70249, 4.23243, 5.58241, 3.95250]),
        ((135, 97), [6.00000, 4.81515, 5.35715, 5.94023, 5.85650], [0.52615, 1.95786, 2.25638, 5.04141]),
    ],
)
def test_features_are_those_of_the_publishers_own_code(
    real: Stages, size: geometry.Size, pooled: list[float], cells: list[float], assert_near: Callable[..., None]
) -> None:
    """Numbers that the package efficientnet-lite-pytorch 0.1.0 gave for the same picture and file."""
    with torch.no_grad():
        features = real(patterned(*size))[0]  # (1280,h,w)
    assert_near(features.mean((1, 2))[[245, 971, 949, 1115, 315]], pooled, rtol=0, atol=1e-4)
    assert_near(features[971].flatten()[:4], cells, rtol=0, atol=1e-4)


def test_the_real_file_names_every_layer_and_a_classifier(real: Stages) -> None:
    file = WEIGHTS[f"{NAME}-imagenet"]
    path = cache_home() / f"{NAME}-imagenet" / file.name
    raw = read_torch_file(path if path.exists() else pretrained._in_package(NAME), file.sha256)
    assert raw.keys() - {published_name(key) for key in real.state_dict()} == {"_fc.weight", "_fc.bias"}
    assert imagenet_weights(NAME).keys() == real.state_dict().keys()
    photograph = importlib.resources.files("saccade.data") / "packs" / "backgrounds" / "test" / "cat.jpg"
    with importlib.resources.as_file(photograph) as jpeg, Image.open(jpeg) as picture:
        pixels = np.asarray(picture.convert("RGB").resize((224, 224), box=_square(picture.size)))
    image = torch.tensor(pixels).permute(2, 0, 1).unsqueeze(0) / 255  # (1,3,224,224)
    with torch.no_grad():
        logits = F.linear(real(image).mean((2, 3)), raw["_fc.weight"], raw["_fc.bias"])  # (1,1000)
    cats = logits.softmax(-1)[0, [281, 282, 285]].sum()  # tabby, tiger cat, Egyptian cat
    assert cats > 0.8


def _square(size: tuple[int, int]) -> tuple[float, float, float, float]:
    """The largest square in the middle of a picture of (width, height) ``size``."""
    side = min(size)
    left, top = (size[0] - side) / 2, (size[1] - side) / 2
    return (left, top, left + side, top + side)
