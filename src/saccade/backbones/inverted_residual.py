"""Networks of inverted residual blocks: the block, the rows of the tables that describe them, and how both make stages.

Paper: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018 (arXiv:1801.04381), Table 1. A
block widens its few channels by t, filters each of them alone (depthwise), and projects back without an activation;
where neither size nor channels change, its input is added.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from torch import Tensor, nn

from saccade.backbones.layers import Normalise, start_weights
from saccade.backbones.stages import Stages


class Row(NamedTuple):
    """The blocks of one row of a published table."""

    widening: int
    channels: int
    blocks: int
    stride: int
    """Stride of the first block; the others keep the grid."""
    kernel: int = 3


class Convolve(Protocol):
    """Makes the convolutions of a network, and so decides how they are padded."""

    def __call__(self, channels: int, outgoing: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
        """A convolution without bias."""
        ...


def centred(channels: int, outgoing: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution of odd kernel, padded alike on all sides."""
    return nn.Conv2d(channels, outgoing, kernel, stride, kernel // 2, groups=groups, bias=False)


class InvertedResidual(nn.Module):
    """Widen, filter each channel, project (Table 1)."""

    def __init__(
        self,
        channels: int,
        outgoing: int,
        stride: int,
        widening: int,
        kernel: int = 3,
        convolve: Convolve = centred,
    ) -> None:
        super().__init__()
        wide = channels * widening
        self.adds = stride == 1 and channels == outgoing
        self.conv = nn.Sequential(
            *([_rectified(convolve(channels, wide, 1))] if widening != 1 else []),
            _rectified(convolve(wide, wide, kernel, stride, groups=wide)),
            convolve(wide, outgoing, 1),
            nn.BatchNorm2d(outgoing),
        )

    @property
    def grid_path(self) -> tuple[nn.Module, ...]:
        """What is projected; what is added has the same grid."""
        return (self.conv,)

    def forward(self, features: Tensor) -> Tensor:
        """(B,C,h,w) → (B,C',h/stride,w/stride)."""
        projected: Tensor = self.conv(features)
        return features + projected if self.adds else projected


def inverted_residual_stages(
    table: Sequence[Row],
    *,
    stem: int,
    head: int,
    width: float,
    normalise: Normalise,
    convolve: Convolve = centred,
) -> Stages:
    """Stages "block0" (a plain convolution), "block1" … (the blocks of ``table``) and "head" (a 1×1 convolution).

    Args:
        table: the rows of blocks, in order.
        stem: channels of the first convolution.
        head: channels of the last one.
        width: multiplies the channels of the table, which stay multiples of eight.
        normalise: what pictures go through first.
        convolve: how convolutions are made, and so how they are padded.
    """
    first = OrderedDict([("normalise", normalise), *_rectified(convolve(3, stem, 3, 2)).named_children()])
    stages: OrderedDict[str, nn.Module] = OrderedDict(block0=nn.Sequential(first))
    channels = {"block0": stem}
    incoming = stem
    for row in table:
        outgoing = multiple_of_eight(row.channels * width)
        for position in range(row.blocks):
            name = f"block{len(stages)}"
            stride = row.stride if position == 0 else 1
            stages[name] = InvertedResidual(incoming, outgoing, stride, row.widening, row.kernel, convolve)
            channels[name] = incoming = outgoing
    stages["head"] = _rectified(convolve(incoming, head, 1))
    network = Stages(stages, {**channels, "head": head})
    start_weights(network)
    return network


def multiple_of_eight(channels: float) -> int:
    """The nearest multiple of eight that is at least eight and loses no more than a tenth."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def _rectified(convolution: nn.Conv2d) -> nn.Sequential:
    """Convolution, norm, ReLU6."""
    return nn.Sequential(convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU6(inplace=True))
