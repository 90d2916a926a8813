"""Pre-activation residual units, and the stages that residual attention networks and their controls are made of.

Papers: He et al., "Identity Mappings in Deep Residual Networks", 2016 (arXiv:1603.05027); Wang et al., "Residual
Attention Network for Image Classification", 2017 (arXiv:1704.06904), Table 2, whose units are these.

A unit is x + F(x) with F = BN-ReLU-1×1(C/4)-BN-ReLU-3×3(C/4)-BN-ReLU-1×1(C). Where size or channels change, the
shortcut is a 1×1 convolution of the first BN-ReLU, and the 3×3 convolution has the stride.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from torch import Tensor, nn

from saccade.backbones.layers import Normalise

Stem = Literal["small", "large"]
"""``small`` is for pictures of about 32 × 32, ``large`` for about 224 × 224."""
BOTTLENECK = 4


class PreActivationUnit(nn.Module):
    """One residual unit: (B,C,h,w) → (B,C',h/stride,w/stride)."""

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
        active = self.norm1(features).relu()
        residual = self.conv1(active)
        residual = self.conv2(self.norm2(residual).relu())
        residual = self.conv3(self.norm3(residual).relu())
        total: Tensor = residual + (features if self.project is None else self.project(active))
        return total


def stem(kind: Stem, channels: int) -> nn.Sequential:
    """The first layers, ``channels`` out: a 3×3 convolution, or a 7×7 with stride 2 and a pooling.

    Pictures in 0..1 have the mean colour subtracted first.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict(normalise=Normalise())
    if kind == "small":
        layers["conv"] = nn.Conv2d(3, channels, 3, 1, 1, bias=False)
    else:
        layers["conv"] = nn.Conv2d(3, channels, 7, 2, 3, bias=False)
        layers["norm"], layers["relu"] = nn.BatchNorm2d(channels), nn.ReLU()
        layers["pool"] = nn.MaxPool2d(3, 2, 1)
    return nn.Sequential(layers)


def strides(widths: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Of the first unit of each stage: 1 in the first stage, and then 2 wherever there are more channels than before.

    >>> strides((64, 128, 256, 256)), strides((256, 512, 1024, 2048))
    ((1, 2, 2, 1), (1, 2, 2, 2))
    """
    one, two, three, four = widths
    return 1, 2 if two > one else 1, 2 if three > two else 1, 2 if four > three else 1
