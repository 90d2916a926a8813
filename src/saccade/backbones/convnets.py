"""Convolutional networks: VGG, ResNet, a compact one, and residual units with the activation first.

**VGG-16 and -19**, convolutions only: five blocks of 3×3 convolutions, each followed by a 2×2 max pooling. Simonyan and
Zisserman, "Very Deep Convolutional Networks", 2015 (arXiv:1409.1556), Table 1, columns D and E. The convolutions of a
block and its pooling are stages of their own, because heads attach on both sides: to "pool3", "pool4" and "pool5" (Seo
et al., 2016) and to the 14×14×512 map "conv5" before the last pooling (Xu et al., 2015). Deviations: no fully connected
layers; He-normal initial weights instead of training in steps of depth.

**ResNet-18, -34 and -50.** He et al., "Deep Residual Learning for Image Recognition", 2016 (arXiv:1512.03385), Table 1:
y = ReLU(F(x) + S(x)), where the shortcut S is the identity, or a 1×1 convolution where size or channels change.
Deviation: in ResNet-50 the 3×3 convolution has the stride, not the 1×1 before it, as in the common published weights
("v1.5"), whose names the layers have.

**Compact**, small enough to ship and to train from scratch in a minute: one such block in each stage and fewer
channels. A picture of 100×100 pixels ends in 7×7 cells. Deviations: widths and depth; no pooling in the stem; the input
is centred by its mid-grey, not by the statistics of ImageNet. Further blocks are stages of their own and start as the
identity (the scale of their last norm is 0), so weights without them still load and compute the same.

**Pre-activation units.** He et al., "Identity Mappings in Deep Residual Networks", 2016 (arXiv:1603.05027), as in Wang
et al., "Residual Attention Network for Image Classification", 2017 (arXiv:1704.06904), Table 2: x + F(x) with
F = BN-ReLU-1×1(C/4)-BN-ReLU-3×3(C/4)-BN-ReLU-1×1(C). Where size or channels change, the shortcut is a 1×1 convolution
of the first BN-ReLU, and the 3×3 convolution has the stride.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise
from typing import ClassVar, Literal

from torch import Tensor, nn

from saccade.backbones.stages import Normalise, Stages, add_in_place, started

CONVOLUTIONS: dict[int, tuple[int, ...]] = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
"""Layers → convolutions in each block."""
_WIDTHS = (1, 2, 4, 8, 8)


def vgg(layers: int, *, width: int = 64) -> Stages:
    """Stages "conv1", "pool1" … "conv5", "pool5" of the VGG net of 16 or 19 ``layers``; ``width`` channels in "conv1".

    >>> grid = vgg(19).grid((224, 224))
    >>> grid["conv5"], grid["pool5"]
    ((14, 14), (7, 7))
    """
    stages: list[tuple[str, nn.Module, int]] = []
    incoming, index = 3, 0  # layers bear their place in the published list of features, which names their weights
    for block, count in enumerate(CONVOLUTIONS[layers], start=1):
        outgoing = width * _WIDTHS[block - 1]
        convolutions: OrderedDict[str, nn.Module] = OrderedDict()
        if block == 1:
            convolutions["normalise"] = Normalise()
        for _ in range(count):
            convolutions[str(index)] = nn.Conv2d(incoming, outgoing, 3, padding=1)
            convolutions[str(index + 1)] = nn.ReLU(inplace=True)
            incoming, index = outgoing, index + 2
        stages.append((f"conv{block}", nn.Sequential(convolutions), outgoing))
        stages.append((f"pool{block}", nn.MaxPool2d(2), outgoing))
        index += 1
    return started(stages)


def vgg_key(key: str) -> str:
    """The name, in the weights in circulation, of the entry ``key`` of the state of :func:`vgg`."""
    _, _, layer = key.split(".", 2)  # stages.conv2.5.weight: layers are numbered through, whatever their stage
    return f"features.{layer}"


class ResidualBlock(nn.Module):
    """What both kinds of block share: the shortcut, and where the sum lies in memory."""

    expansion = 1
    """Channels that come out, for each channel inside."""
    path: ClassVar[tuple[str, ...]] = ("conv1", "bn1", "relu", "conv2", "bn2")
    """The layers of F, in order."""
    norm_of: ClassVar[dict[str, str]] = {"conv1": "bn1", "conv2": "bn2"}
    """Which norm follows which convolution."""

    def __init__(self, channels: int, inside: int, stride: int) -> None:
        super().__init__()
        out = inside * self.expansion
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    @property
    def grid_path(self) -> list[nn.Module]:
        """The layers of F; the shortcut's 1×1 convolution has the same centres."""
        return [getattr(self, name) for name in self.path]

    def forward(self, features: Tensor) -> Tensor:
        """(B,C,h,w) → (B,C',h/stride,w/stride)."""
        residual = features
        for layer in self.grid_path:
            residual = layer(residual)
        total: Tensor = self.relu(add_in_place(residual, self.downsample(features)))
        return total


class BasicBlock(ResidualBlock):
    """Two 3×3 convolutions: ResNet-18 and -34; of ``kernel`` 1 a cell learns nothing of its neighbours."""

    def __init__(self, channels: int, inside: int, stride: int, *, kernel: int = 3) -> None:
        super().__init__(channels, inside, stride)
        self.conv1 = nn.Conv2d(channels, inside, kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(inside)
        self.conv2 = nn.Conv2d(inside, inside, kernel, 1, kernel // 2, bias=False)
        self.bn2 = nn.BatchNorm2d(inside)


class Bottleneck(ResidualBlock):
    """1×1 down, 3×3, 1×1 up: ResNet-50."""

    expansion = 4
    path = (*ResidualBlock.path, "relu", "conv3", "bn3")
    norm_of: ClassVar[dict[str, str]] = {"conv1": "bn1", "conv2": "bn2", "conv3": "bn3"}

    def __init__(self, channels: int, inside: int, stride: int) -> None:
        super().__init__(channels, inside, stride)
        self.conv1 = nn.Conv2d(channels, inside, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inside)
        self.conv2 = nn.Conv2d(inside, inside, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inside)
        self.conv3 = nn.Conv2d(inside, inside * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(inside * self.expansion)


BLOCKS: dict[int, tuple[type[ResidualBlock], tuple[int, ...]]] = {
    18: (BasicBlock, (2, 2, 2, 2)),
    34: (BasicBlock, (3, 4, 6, 3)),
    50: (Bottleneck, (3, 4, 6, 3)),
}
"""Layers → kind of block, and how many of them each stage has (Table 1)."""


def resnet(layers: int, *, width: int = 64) -> Stages:
    """Stages "stem", "layer1" … "layer4" of the ResNet with 18, 34 or 50 ``layers``; ``width`` channels in its stem.

    >>> resnet(18).grid((224, 224))
    {'stem': (56, 56), 'layer1': (56, 56), 'layer2': (28, 28), 'layer3': (14, 14), 'layer4': (7, 7)}
    """
    block, counts = BLOCKS[layers]
    stem: OrderedDict[str, nn.Module] = OrderedDict(
        normalise=Normalise(),
        conv1=nn.Conv2d(3, width, 7, 2, 3, bias=False),
        bn1=nn.BatchNorm2d(width),
        relu=nn.ReLU(inplace=True),
        maxpool=nn.MaxPool2d(3, 2, 1),
    )
    stages: list[tuple[str, nn.Module, int]] = [("stem", nn.Sequential(stem), width)]
    incoming = width
    for number, count in enumerate(counts):
        inside = width * 2**number
        blocks = []
        for position in range(count):
            stride = 2 if number > 0 and position == 0 else 1
            blocks.append(block(incoming, inside, stride))
            incoming = inside * block.expansion
        stages.append((f"layer{number + 1}", nn.Sequential(*blocks), incoming))
    return started(stages)


def resnet_key(key: str) -> str:
    """The name, in the weights in circulation, of the entry ``key`` of the state of :func:`resnet`."""
    return key.removeprefix("stages.").removeprefix("stem.")


WIDTHS = (24, 48, 96, 128)  # channels of the four stages


def compact(*, last_stride: int = 2, last_kernel: int = 3, further: tuple[int, ...] = ()) -> Stages:
    """Stages "stem", "layer1" … "layer4", with "layer2b" behind "layer2" if it has a further block.

    ``last_stride`` 1 keeps the grid of the third stage. With ``last_kernel`` 1 a cell sees 47×47 pixels of the picture,
    with 3 it sees 95×95. ``further`` are the numbers of the stages that have a second block.

    >>> compact().grid((100, 100))
    {'stem': (50, 50), 'layer1': (50, 50), 'layer2': (25, 25), 'layer3': (13, 13), 'layer4': (7, 7)}
    """
    stem: OrderedDict[str, nn.Module] = OrderedDict(
        normalise=Normalise((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        conv1=nn.Conv2d(3, WIDTHS[0], 3, 2, 1, bias=False),
        bn1=nn.BatchNorm2d(WIDTHS[0]),
        relu=nn.ReLU(inplace=True),
    )
    stages: list[tuple[str, nn.Module, int]] = [("stem", nn.Sequential(stem), WIDTHS[0])]
    incoming = WIDTHS[0]
    shapes = zip(WIDTHS, (1, 2, 2, last_stride), (3, 3, 3, last_kernel))
    for number, (width, stride, kernel) in enumerate(shapes, start=1):
        stages.append((f"layer{number}", BasicBlock(incoming, width, stride, kernel=kernel), width))
        incoming = width
        if number in further:
            stages.append((f"layer{number}b", BasicBlock(width, width, 1), width))
    network = started(stages)
    for number in further:
        nn.init.zeros_(network.get_submodule(f"stages.layer{number}b.bn2").weight)  # type: ignore[arg-type]  # of a norm
    return network


Stem = Literal["small", "large"]  # for pictures of about 32 × 32, of about 224 × 224
BOTTLENECK = 4


class PreActivationUnit(nn.Module):
    """One residual unit: (B,C,h,w) → (B,C',h/stride,w/stride)."""

    norm_of: ClassVar[dict[str, str]] = {"conv1": "norm2", "conv2": "norm3"}

    def __init__(self, channels: int, out: int, stride: int = 1) -> None:
        super().__init__()
        inside = out // BOTTLENECK
        self.norm1, self.conv1 = nn.BatchNorm2d(channels), nn.Conv2d(channels, inside, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(inside), nn.Conv2d(inside, inside, 3, stride, 1, bias=False)
        self.norm3, self.conv3 = nn.BatchNorm2d(inside), nn.Conv2d(inside, out, 1, bias=False)
        self.project: nn.Conv2d | None = None
        if stride != 1 or channels != out:
            self.project = nn.Conv2d(channels, out, 1, stride, bias=False)

    @property
    def grid_path(self) -> tuple[nn.Module, ...]:
        """The convolutions of F; the shortcut has the same centres."""
        return self.conv1, self.conv2, self.conv3

    def forward(self, features: Tensor) -> Tensor:
        """The input and what the branch adds to it: x + F(x)."""
        active = self.norm1(features).relu_()
        residual: Tensor = self.conv1(active)
        residual = self.conv2(self.norm2(residual).relu_())
        residual = self.conv3(self.norm3(residual).relu_())
        return add_in_place(residual, features if self.project is None else self.project(active))


def stem(kind: Stem, channels: int) -> nn.Sequential:
    """The first layers, ``channels`` out: normalise, then a 3×3 convolution, or a 7×7 with stride 2 and a pooling."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(normalise=Normalise())
    if kind == "small":
        layers["conv"] = nn.Conv2d(3, channels, 3, 1, 1, bias=False)
    else:
        layers["conv"] = nn.Conv2d(3, channels, 7, 2, 3, bias=False)
        layers["norm"], layers["relu"] = nn.BatchNorm2d(channels), nn.ReLU()
        layers["pool"] = nn.MaxPool2d(3, 2, 1)
    return nn.Sequential(layers)


def strides(widths: tuple[int, ...]) -> tuple[int, ...]:
    """Of the first unit of each stage: 1 in the first stage, and then 2 wherever there are more channels than before.

    >>> strides((64, 128, 256, 256)), strides((256, 512, 1024, 2048))
    ((1, 2, 2, 1), (1, 2, 2, 2))
    """
    return (1, *(2 if width > before else 1 for before, width in pairwise(widths)))
