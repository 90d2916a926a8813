"""The stages of a backbone where a query may enter: those that end a resolution, found from the frames of the stages.

A deep backbone has several stages of one grid; the last of them knows the most at that resolution. A pooling that is a
stage of its own ends the resolution of the convolutions before it, as each stage of the paper's small stack does.
"""

from __future__ import annotations

import itertools

import torch
from torch import nn

from saccade.backbones import Stages


def resolution_ends(backbone: Stages) -> tuple[str, ...]:
    """The stages behind which the grid becomes coarser, in order, and the last stage.

    >>> from saccade.backbones import build_backbone
    >>> resolution_ends(build_backbone("vgg16"))
    ('pool1', 'pool2', 'pool3', 'pool4', 'pool5')
    >>> resolution_ends(build_backbone("resnet18", through="layer3"))
    ('layer1', 'layer2', 'layer3')
    """
    spacing = {name: frame[:, :2] for name, frame in backbone.frames.items()}  # (2,2): pixels from cell to cell
    whole = [name for name, after in itertools.pairwise(backbone.names) if not _only_pools(backbone.stages[after])]
    whole.append(backbone.names[-1])
    ends = [name for name, after in itertools.pairwise(whole) if not torch.equal(spacing[name], spacing[after])]
    return (*ends, backbone.names[-1])


def _only_pools(stage: nn.Module) -> bool:
    return next(stage.parameters(), None) is None
