"""A compact residual network: a stem and four stages, small enough to ship and to train from scratch in a minute.

Paper: the blocks of He et al., "Deep Residual Learning for Image Recognition", 2016 (arXiv:1512.03385), one in each
stage and fewer channels. The stem halves the picture and each later stage but the first halves it again, so that a
picture of 100×100 pixels ends in 7×7 cells, as one of 224×224 does in the published networks.

Deviations from the paper: widths and depth; no pooling in the stem; the input is centred by its mid-grey, not by the
statistics of ImageNet, which it never sees. Further blocks are stages of their own and start as the identity: the scale
of their last norm is 0. So the weights of the network without them load, and compute what they did.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from saccade.backbones.layers import Normalise, start_weights
from saccade.backbones.resnet import BasicBlock
from saccade.backbones.stages import Stages

WIDTHS = (24, 48, 96, 128)
"""Channels of the four stages."""


def compact(*, last_stride: int = 2, last_kernel: int = 3, further: tuple[int, ...] = ()) -> Stages:
    """Stages "stem", "layer1" … "layer4", with "layer2b" behind "layer2" if it has a further block.

    Args:
        last_stride: of the last stage; 1 keeps the grid of the third, twice as fine, and all the layers.
        last_kernel: of its convolutions; with 1 a cell sees 47×47 pixels of the picture, with 3 it sees 95×95.
        further: numbers of the stages that have a second block.

    >>> compact().grid((100, 100))
    {'stem': (50, 50), 'layer1': (50, 50), 'layer2': (25, 25), 'layer3': (13, 13), 'layer4': (7, 7)}
    """
    stem: OrderedDict[str, nn.Module] = OrderedDict(
        normalise=Normalise((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        conv1=nn.Conv2d(3, WIDTHS[0], 3, 2, 1, bias=False),
        bn1=nn.BatchNorm2d(WIDTHS[0]),
        relu=nn.ReLU(inplace=True),
    )
    stages: OrderedDict[str, nn.Module] = OrderedDict(stem=nn.Sequential(stem))
    channels = {"stem": WIDTHS[0]}
    incoming = WIDTHS[0]
    shapes = zip(WIDTHS, (1, 2, 2, last_stride), (3, 3, 3, last_kernel))
    for number, (width, stride, kernel) in enumerate(shapes, start=1):
        stages[f"layer{number}"] = BasicBlock(incoming, width, stride, kernel=kernel)
        channels[f"layer{number}"] = incoming = width
        if number in further:
            stages[f"layer{number}b"] = BasicBlock(width, width, 1)
            channels[f"layer{number}b"] = width
    network = Stages(stages, channels)
    start_weights(network)
    for number in further:
        nn.init.zeros_(network.get_submodule(f"stages.layer{number}b.bn2").weight)  # type: ignore[arg-type]  # of a norm
    return network
