"""MobileNetV2: inverted residual blocks, each a stage of its own, so that attention can follow any of them.

Paper: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018 (arXiv:1801.04381), Table 2.

Deviations from the paper: none. Layers are numbered as in the published weights.
"""

from __future__ import annotations

from saccade.backbones.inverted_residual import Row, inverted_residual_stages, multiple_of_eight
from saccade.backbones.layers import Normalise
from saccade.backbones.stages import Stages

STEM, HEAD = 32, 1280
TABLE = (
    Row(1, 16, 1, 1),
    Row(6, 24, 2, 2),
    Row(6, 32, 3, 2),
    Row(6, 64, 4, 2),
    Row(6, 96, 3, 1),
    Row(6, 160, 3, 2),
    Row(6, 320, 1, 1),
)
"""Table 2: widening t, channels c, blocks n, stride s of the first of them."""


def mobilenet_v2(*, width: float = 1.0) -> Stages:
    """Stages "block0" (a plain convolution), "block1" … "block17" (inverted residuals) and "head" (1×1 convolution).

    ``width`` multiplies all channels, which stay multiples of eight; the head is never narrowed.

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


def published_name(key: str) -> str:
    """The name, in the weights in circulation, of the entry ``key`` of the state of :func:`mobilenet_v2`."""
    _, stage, layer = key.split(".", 2)
    number = 1 + sum(row.blocks for row in TABLE) if stage == "head" else stage.removeprefix("block")
    return f"features.{number}.{layer}"
