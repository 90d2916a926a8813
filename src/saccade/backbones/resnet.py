"""ResNet-18, -34 and -50: a stem and four stages of residual blocks.

Paper: He et al., "Deep Residual Learning for Image Recognition", 2016 (arXiv:1512.03385), Table 1. A block computes
y = ReLU(F(x) + S(x)), where the shortcut S is the identity, or a 1×1 convolution where size or channels change.

Deviations from the paper: in ResNet-50 the 3×3 convolution has the stride, not the 1×1 before it, as in the common
published weights ("v1.5"). Layers have the names of those weights, so they load without a name table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict

from torch import Tensor, nn

from saccade.backbones.layers import Normalise, start_weights
from saccade.backbones.stages import Stages


class ResidualBlock(nn.Module, ABC):
    """What both kinds of block share: the shortcut, and that the sum lies where the residual branch puts it."""

    expansion = 1
    """Channels that come out, for each channel inside."""

    def __init__(self, channels: int, inside: int, stride: int) -> None:
        super().__init__()
        out = inside * self.expansion
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False),
                nn.BatchNorm2d(out),
            )

    @abstractmethod
    def branch(self) -> list[nn.Module]:
        """The layers of F, in order."""

    @property
    def grid_path(self) -> list[nn.Module]:
        """The branch; the shortcut's 1×1 convolution has the same centres."""
        return self.branch()

    def forward(self, features: Tensor) -> Tensor:
        """(B,C,h,w) → (B,C',h/stride,w/stride)."""
        residual = features
        for layer in self.branch():
            residual = layer(residual)
        total: Tensor = self.relu(residual + self.downsample(features))
        return total


class BasicBlock(ResidualBlock):
    """Two 3×3 convolutions: ResNet-18 and -34; of ``kernel`` 1 a cell learns nothing of its neighbours."""

    def __init__(self, channels: int, inside: int, stride: int, *, kernel: int = 3) -> None:
        super().__init__(channels, inside, stride)
        self.conv1 = nn.Conv2d(channels, inside, kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(inside)
        self.conv2 = nn.Conv2d(inside, inside, kernel, 1, kernel // 2, bias=False)
        self.bn2 = nn.BatchNorm2d(inside)

    def branch(self) -> list[nn.Module]:
        """The layers of F, in order."""
        return [self.conv1, self.bn1, self.relu, self.conv2, self.bn2]


class Bottleneck(ResidualBlock):
    """1×1 down, 3×3, 1×1 up: ResNet-50."""

    expansion = 4

    def __init__(self, channels: int, inside: int, stride: int) -> None:
        super().__init__(channels, inside, stride)
        self.conv1 = nn.Conv2d(channels, inside, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inside)
        self.conv2 = nn.Conv2d(inside, inside, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inside)
        self.conv3 = nn.Conv2d(inside, inside * self.expansion, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(inside * self.expansion)

    def branch(self) -> list[nn.Module]:
        """The layers of F, in order."""
        return [self.conv1, self.bn1, self.relu, self.conv2, self.bn2, self.relu, self.conv3, self.bn3]


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
    stages: OrderedDict[str, nn.Module] = OrderedDict(stem=nn.Sequential(stem))
    channels = {"stem": width}
    incoming = width
    for number, count in enumerate(counts):
        inside = width * 2**number
        blocks = []
        for position in range(count):
            stride = 2 if number > 0 and position == 0 else 1
            blocks.append(block(incoming, inside, stride))
            incoming = inside * block.expansion
        stages[f"layer{number + 1}"] = nn.Sequential(*blocks)
        channels[f"layer{number + 1}"] = incoming
    network = Stages(stages, channels)
    start_weights(network)
    return network


def published_name(key: str) -> str:
    """The name, in the weights in circulation, of the entry ``key`` of the state of :func:`resnet`."""
    return key.removeprefix("stages.").removeprefix("stem.")
