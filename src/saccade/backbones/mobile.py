"""Networks of inverted residuals, each a stage, so that attention can follow any: MobileNetV2 and EfficientNet-Lite.

**MobileNetV2.** Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018 (arXiv:1801.04381),
Tables 1 and 2. A block widens its few channels by t, filters each of them alone (depthwise), and projects back without
an activation; where neither size nor channels change, its input is added. Deviations: none. Layers are numbered as in
the published weights.

**EfficientNet-Lite.** Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019
(arXiv:1905.11946), Table 1, in the form for small devices that its authors published in 2020: no
squeeze-and-excitation, ReLU6 for Swish. Lite1 and Lite2 are deeper and wider, for larger pictures; the first block and
the last are never repeated. Pictures are centred as for the published weights: (byte − 127) / 128.

TensorFlow, where the weights were trained, pads strided convolutions by what the size of the picture leaves over. Here
they are padded as for the pictures of training (:data:`SCALES`), whatever the size, so a stage has one frame: less in
front than behind where the trained side is even, alike where it is odd. For other pictures TensorFlow's windows can lie
one pixel of the finer grid away.

Deviations of EfficientNet-Lite: no stochastic depth; norms forget ten times faster than in the 350 epochs of ImageNet,
so that their statistics keep up in a short training.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from saccade.backbones.stages import Normalise, Stages, add_in_place, started


class BlockRow(NamedTuple):
    """The blocks of one row of a published table."""

    widening: int
    channels: int
    blocks: int
    stride: int  # of the first block; the others keep the grid
    kernel: int = 3


Convolve = Callable[..., nn.Conv2d]  # makes convolutions as `centred` does, and decides how they are padded


def centred(channels: int, outgoing: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution of odd kernel, padded alike on all sides."""
    return nn.Conv2d(channels, outgoing, kernel, stride, kernel // 2, groups=groups, bias=False)


class InvertedResidual(nn.Module):
    """Widen, filter each channel, project (Table 1)."""

    def __init__(
        self, channels: int, outgoing: int, stride: int, widening: int, kernel: int = 3, convolve: Convolve = centred
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
        return add_in_place(projected, features) if self.adds else projected


def inverted_residual_stages(
    table: Sequence[BlockRow], *, stem: int, head: int, width: float, normalise: Normalise, convolve: Convolve = centred
) -> Stages:
    """Stages "block0" (a convolution to ``stem`` channels), "block1" … (of ``table``), "head" (1×1, ``head`` channels).

    ``width`` multiplies the channels of the table, which stay multiples of eight.
    """
    first = OrderedDict([("normalise", normalise), *_rectified(convolve(3, stem, 3, 2)).named_children()])
    stages: list[tuple[str, nn.Module, int]] = [("block0", nn.Sequential(first), stem)]
    incoming = stem
    for row in table:
        outgoing = multiple_of_eight(row.channels * width)
        for position in range(row.blocks):
            stride = row.stride if position == 0 else 1
            block = InvertedResidual(incoming, outgoing, stride, row.widening, row.kernel, convolve)
            stages.append((f"block{len(stages)}", block, outgoing))
            incoming = outgoing
    return started([*stages, ("head", _rectified(convolve(incoming, head, 1)), head)])


def multiple_of_eight(channels: float) -> int:
    """The nearest multiple of eight that is at least eight and loses no more than a tenth."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def _rectified(convolution: nn.Conv2d) -> nn.Sequential:
    return nn.Sequential(convolution, nn.BatchNorm2d(convolution.out_channels), nn.ReLU6(inplace=True))


STEM, HEAD = 32, 1280
TABLE = (
    BlockRow(1, 16, 1, 1),
    BlockRow(6, 24, 2, 2),
    BlockRow(6, 32, 3, 2),
    BlockRow(6, 64, 4, 2),
    BlockRow(6, 96, 3, 1),
    BlockRow(6, 160, 3, 2),
    BlockRow(6, 320, 1, 1),
)
"""Table 2: widening t, channels c, blocks n, stride s of the first of them."""


def mobilenet_v2(*, width: float = 1.0) -> Stages:
    """Stages "block0" … "block17" and "head"; ``width`` multiplies all channels, but the head is never narrowed.

    >>> grid = mobilenet_v2().grid((224, 224))
    >>> [grid[name] for name in ("block0", "block3", "block6", "block13", "block17", "head")]
    [(112, 112), (56, 56), (28, 28), (14, 14), (7, 7), (7, 7)]
    """
    return inverted_residual_stages(
        TABLE,
        stem=multiple_of_eight(STEM * width),
        head=multiple_of_eight(HEAD * max(1.0, width)),
        width=width,
        normalise=Normalise(),
    )


def mobilenet_v2_key(key: str) -> str:
    """The name, in the weights in circulation, of the entry ``key`` of the state of :func:`mobilenet_v2`."""
    _, stage, layer = key.split(".", 2)
    number = 1 + sum(row.blocks for row in TABLE) if stage == "head" else stage.removeprefix("block")
    return f"features.{number}.{layer}"


LITE_TABLE = (
    BlockRow(1, 16, 1, 1),
    BlockRow(6, 24, 2, 2),
    BlockRow(6, 40, 2, 2, kernel=5),
    BlockRow(6, 80, 3, 2),
    BlockRow(6, 112, 3, 1, kernel=5),
    BlockRow(6, 192, 4, 2, kernel=5),
    BlockRow(6, 320, 1, 1),
)
"""Table 1: widening, channels, blocks, stride of the first of them, kernel."""


class Scale(NamedTuple):
    """How a network grows out of the table, and the side of the pictures that its weights were trained on."""

    width: float
    depth: float
    side: int


SCALES = (Scale(1.0, 1.0, 224), Scale(1.0, 1.1, 240), Scale(1.1, 1.2, 260))  # Lite0, Lite1, Lite2
MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3
NORM_EPSILON = 1e-3


class EvenSameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow's "same" pads a picture that its stride divides: the odd zero goes behind."""

    def __init__(self, channels: int, outgoing: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        both_sides, behind = divmod(kernel - stride, 2)
        super().__init__(channels, outgoing, kernel, stride, both_sides, groups=groups, bias=False)
        self.behind = behind

    def forward(self, features: Tensor) -> Tensor:
        """(B,C,h,w) → (B,C',h/stride,w/stride), rounded down."""
        if self.behind:
            features = F.pad(features, (0, self.behind, 0, self.behind))  # (B,C,h+1,w+1)
        return super().forward(features)


class SameAsTrained:
    """Makes the convolutions of a network, in order; ``side`` is that of the trained picture where the next one is."""

    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, channels: int, outgoing: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
        """The next convolution, without bias."""
        convolve = centred if self.side % stride else EvenSameConv2d
        self.side = math.ceil(self.side / stride)
        return convolve(channels, outgoing, kernel, stride, groups)


def efficientnet_lite(version: int, *, width: float = 1.0) -> Stages:
    """Stages "block0" … "block16" and "head"; of Lite1 and Lite2 the last block is "block21".

    ``width`` multiplies the channels of the blocks once more; block0 and head have their own.

    >>> grid = efficientnet_lite(0).grid((224, 224))
    >>> [grid[name] for name in ("block0", "block3", "block5", "block11", "block16", "head")]
    [(112, 112), (56, 56), (28, 28), (14, 14), (7, 7), (7, 7)]
    >>> grid = efficientnet_lite(2).grid((260, 260))
    >>> [grid[name] for name in ("block0", "block4", "block7", "block15", "block21", "head")]
    [(130, 130), (65, 65), (33, 33), (17, 17), (9, 9), (9, 9)]
    """
    scale = SCALES[version]
    first, *inner, last = LITE_TABLE  # which are never repeated
    network = inverted_residual_stages(
        [first, *(row._replace(blocks=math.ceil(scale.depth * row.blocks)) for row in inner), last],
        stem=STEM,
        head=HEAD,
        width=scale.width * width,
        normalise=Normalise(MEAN, STD),
        convolve=SameAsTrained(scale.side),
    )
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = NORM_EPSILON
    return network


_LAYERS = {
    "block0": {"0": "_conv_stem", "1": "_bn0"},
    "head": {"0": "_conv_head", "1": "_bn1"},
    "block1": {"conv.0.0": "_depthwise_conv", "conv.0.1": "_bn1", "conv.1": "_project_conv", "conv.2": "_bn2"},
}
_WIDENED = {
    "conv.0.0": "_expand_conv",
    "conv.0.1": "_bn0",
    "conv.1.0": "_depthwise_conv",
    "conv.1.1": "_bn1",
    "conv.2": "_project_conv",
    "conv.3": "_bn2",
}


def efficientnet_lite_key(key: str) -> str:
    """The name, in the weights in circulation, of the entry ``key`` of the state of :func:`efficientnet_lite`."""
    _, stage, path = key.split(".", 2)
    layer, _, tensor = path.rpartition(".")
    layer = _LAYERS.get(stage, _WIDENED)[layer]
    inside = "" if stage in ("block0", "head") else f"_blocks.{int(stage.removeprefix('block')) - 1}."
    return f"{inside}{layer}.{tensor}"
