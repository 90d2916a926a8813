"""Where a query may enter a backbone: the stages that end a resolution."""

from __future__ import annotations

import pytest

from saccade.backbones import build_backbone
from saccade.models.picture_query import resolution_ends


@pytest.mark.parametrize(
    ("backbone", "through", "ends"),
    [
        ("small", None, ("stage1", "stage2", "stage3", "stage4")),
        ("small", "stage2", ("stage1", "stage2")),
        ("resnet18", None, ("layer1", "layer2", "layer3", "layer4")),  # the stem has the grid of layer1
        ("resnet18", "stem", ("stem",)),
        ("vgg16", "pool3", ("pool1", "pool2", "pool3")),  # a pooling belongs to its convolutions
        ("vgg16", "conv3", ("pool1", "conv3")),  # pool2 has the grid of conv3
        ("mobilenetv2", "block7", ("block1", "block3", "block6", "block7")),
        ("mobilenetv2", None, ("block1", "block3", "block6", "block13", "head")),
        ("efficientnet-lite0", "block8", ("block1", "block3", "block5", "block8")),
        ("efficientnet-lite0", None, ("block1", "block3", "block5", "block11", "head")),
        ("efficientnet-lite2", None, ("block1", "block4", "block7", "block15", "head")),
    ],
)
def test_the_last_stage_of_each_grid(backbone: str, through: str | None, ends: tuple[str, ...]) -> None:
    assert resolution_ends(build_backbone(backbone, through=through)) == ends


def test_grids_really_differ_from_end_to_end() -> None:
    backbone = build_backbone("mobilenetv2", through="block14")
    grids = backbone.grid((128, 96))
    assert [grids[name] for name in resolution_ends(backbone)] == [(64, 48), (32, 24), (16, 12), (8, 6), (4, 3)]
