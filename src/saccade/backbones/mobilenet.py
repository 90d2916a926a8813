"""MobileNetV2: inverted residual blocks, each a stage of its own, so that attention can follow any of them.

Paper: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018 (arXiv:1801.04381), Table 2. A
block widens its few channels by t, filters each of them alone (depthwise 3×3), and projects back without an activation;
where neither size nor channels change, its input is added.

Deviations from the paper: none. Layers are numbered as in the published weights.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import Tensor, nn

from saccade import geometry
from saccade.backbones.layers import Normalise, start_weights
from saccade.backbones.stages import Stages

STEM, HEAD = 32, 1280
TABLE = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Table 2, one row for each resolution: widening t, channels c, blocks n, stride s of the first of them."""


class InvertedResidual(nn.Module):
    """Widen, filter each channel, project (Table 1)."""

    def __init__(self, channels: int, outgoing: int, stride: int, widening: int) -> None:
        super().__init__()
        wide = channels * widening
        self.adds = stride == 1 and channels == outgoing
        self.conv = nn.Sequential(
            *([_convolution(channels, wide, 1)] if widening != 1 else []),
            _convolution(wide, wide, 3, stride, groups=wide),
            nn.Conv2d(wide, outgoing, 1, bias=False),
            nn.BatchNorm2d(outgoing),
        )

    @property
    def frame_step(self) -> Tensor:
        """Output cells → input cells; what is added has the same grid."""
        return geometry.frame_through(self.conv)

    def forward(self, features: Tensor) -> Tensor:
        """(B,C,h,w) → (B,C',h/stride,w/stride)."""
        projected: Tensor = self.conv(features)
        return features + projected if self.adds else projected


def mobilenet_v2(*, width: float = 1.0) -> Stages:
    """Stages "block0" (a plain convolution), "block1" … "block17" (inverted residuals) and "head" (1×1 convolution).

    ``width`` multiplies all channels, which stay multiples of eight; the head is never narrowed.

    >>> grid = mobilenet_v2().grid((224, 224))
    >>> [grid[name] for name in ("block0", "block3", "block6", "block13", "block17", "head")]
    [(112, 112), (56, 56), (28, 28), (14, 14), (7, 7), (7, 7)]
    """
    incoming = _multiple_of_eight(STEM * width)
    head = _multiple_of_eight(HEAD * max(1.0, width))
    first = nn.Sequential(OrderedDict([("normalise", Normalise()), *_convolution(3, incoming, 3, 2).named_children()]))
    stages: OrderedDict[str, nn.Module] = OrderedDict(block0=first)
    channels = {"block0": incoming}
    for widening, plain_channels, count, first_stride in TABLE:
        outgoing = _multiple_of_eight(plain_channels * width)
        for position in range(count):
            name = f"block{len(stages)}"
            stages[name] = InvertedResidual(incoming, outgoing, first_stride if position == 0 else 1, widening)
            channels[name] = incoming = outgoing
    stages["head"] = _convolution(incoming, head, 1)
    network = Stages(stages, {**channels, "head": head})
    start_weights(network)
    return network


def published_name(key: str) -> str:
    """The name, in the weights in circulation, of the entry ``key`` of the state of :func:`mobilenet_v2`."""
    _, stage, layer = key.split(".", 2)
    number = 1 + sum(count for _, _, count, _ in TABLE) if stage == "head" else stage.removeprefix("block")
    return f"features.{number}.{layer}"


def _convolution(channels: int, outgoing: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution, norm, ReLU6."""
    return nn.Sequential(
        nn.Conv2d(channels, outgoing, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outgoing),
        nn.ReLU6(inplace=True),
    )


def _multiple_of_eight(channels: float) -> int:
    """The nearest multiple of eight that is at least eight and loses no more than a tenth."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded
