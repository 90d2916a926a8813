"""EfficientNet-Lite0: a searched network of inverted residuals, some with 5×5 filters; each block is a stage.

Paper: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019 (arXiv:1905.11946),
Table 1, in the form for small devices that its authors published in 2020: no squeeze-and-excitation, ReLU6 for Swish.
Pictures are centred as for its published weights, (byte − 127) / 128, not by the statistics of ImageNet.

TensorFlow, where the weights were trained, pads strided convolutions by what the size of the picture leaves over. Here
they are padded as for the published 224 × 224, whatever the size: less in front than behind. So a stage has one frame,
and no pixel is left out; where a side is odd on its way down, TensorFlow would have one cell more, and all of them lie
one pixel of the finer grid further up or left.

Deviations from the paper: no stochastic depth; norms forget as in the other backbones, ten times faster than in the 350
epochs of ImageNet, or their statistics would lag behind the weights in a short training.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from saccade.backbones.inverted_residual import Row, inverted_residual_stages
from saccade.backbones.layers import Normalise
from saccade.backbones.stages import Stages

STEM, HEAD = 32, 1280
TABLE = (
    Row(1, 16, 1, 1),
    Row(6, 24, 2, 2),
    Row(6, 40, 2, 2, kernel=5),
    Row(6, 80, 3, 2),
    Row(6, 112, 3, 1, kernel=5),
    Row(6, 192, 4, 2, kernel=5),
    Row(6, 320, 1, 1),
)
"""Table 1: widening, channels, blocks, stride of the first of them, kernel."""
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


def efficientnet_lite0(*, width: float = 1.0) -> Stages:
    """Stages "block0" (a plain convolution), "block1" … "block16" (inverted residuals) and "head" (1×1 convolution).

    ``width`` multiplies the channels of the blocks, which stay multiples of eight; block0 and head have their own.

    >>> grid = efficientnet_lite0().grid((224, 224))
    >>> [grid[name] for name in ("block0", "block3", "block5", "block11", "block16", "head")]
    [(112, 112), (56, 56), (28, 28), (14, 14), (7, 7), (7, 7)]
    """
    network = inverted_residual_stages(
        TABLE,
        stem=STEM,
        head=HEAD,
        width=width,
        normalise=Normalise(MEAN, STD),
        convolve=EvenSameConv2d,
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


def published_name(key: str) -> str:
    """The name, in the weights in circulation, of the entry ``key`` of the state of :func:`efficientnet_lite0`."""
    _, stage, path = key.split(".", 2)
    layer, _, tensor = path.rpartition(".")
    layer = _LAYERS.get(stage, _WIDENED)[layer]
    inside = "" if stage in ("block0", "head") else f"_blocks.{int(stage.removeprefix('block')) - 1}."
    return f"{inside}{layer}.{tensor}"
