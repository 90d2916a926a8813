"""Maps of several stages as one: folded and unfolded without loss, and which stages make a pyramid."""

from __future__ import annotations

import pytest
import torch

from saccade.backbones import build_backbone
from saccade.backbones.stages import finer_stages, folded, folded_channels, levels_of, unfolded
from saccade.errors import ConfigError, DataError


def test_maps_come_back_as_they_were() -> None:
    stages = build_backbone("compact").eval()
    finer = finer_stages(stages, (64, 96))
    levels = levels_of(stages, finer)
    assert [level.name for level in levels] == ["layer2", "layer3", "layer4"]
    images = torch.rand(2, 3, 64, 96)
    with torch.no_grad():
        together = folded(stages, images, levels)
        each = [stages.between(images, to=level.name) for level in levels]
        below = folded(stages, images, levels, finer_only=True)
    assert together.shape == (2, folded_channels(levels), *each[-1].shape[-2:])
    assert torch.equal(below, together[:, : below.shape[1]])
    for found, wanted in zip(unfolded(together, levels), each, strict=True):
        assert torch.equal(found, wanted)


def test_a_pyramid_takes_the_last_stage_of_each_resolution() -> None:
    stages = build_backbone("mobilenetv2")
    assert finer_stages(stages, (224, 224)) == ("block6", "block13")
    assert [level.factor for level in levels_of(stages, ("block6", "block13"))] == [4, 2, 1]
    assert finer_stages(stages, (200, 200)) == ()  # 25, 13 and 7 cells do not fit into each other
    assert finer_stages(build_backbone("mobilenetv2", through="block13"), (640, 640)) == ()  # 80 cells are too many


def test_stages_that_do_not_fit_are_refused() -> None:
    stages = build_backbone("compact")
    with pytest.raises(ConfigError, match="each stage must be coarser"):
        levels_of(stages, ("layer3", "layer2"))
    with pytest.raises(ConfigError, match="no stage 'layer9'"):
        levels_of(stages, ("layer9",))
    with pytest.raises(DataError, match="do not fit at this size"):
        folded(stages.eval(), torch.rand(1, 3, 50, 50), levels_of(stages, ("layer2", "layer3")))
