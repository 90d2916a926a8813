"""VGG-16 and VGG-19, convolutions only: five blocks of 3×3 convolutions, each followed by a 2×2 max pooling.

Paper: Simonyan and Zisserman, "Very Deep Convolutional Networks", 2015 (arXiv:1409.1556), Table 1, columns D and E.
The convolutions of a block and its pooling are stages of their own, because heads attach on both sides: to "pool3",
"pool4" and "pool5" (Seo et al., 2016) and to the 14×14×512 map "conv5" before the last pooling (Xu et al., 2015).

Deviations from the paper: no fully connected layers; He-normal initial weights instead of training in steps of depth.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from saccade.backbones.stages import Normalise, Stages, started

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
