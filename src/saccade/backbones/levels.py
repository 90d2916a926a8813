"""Maps of several stages as one: a finer map is folded onto the cells of the last stage, its cells becoming channels.

A map of C channels that is f times as fine has f² of its cells in each cell of the last one: (B,C,f·h,f·w) becomes
(B,C·f²,h,w), and back without loss. So the features of several stages are one tensor, which can be cached, batched and
standardised like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.backbones.stages import Stages
from saccade.errors import ConfigError, DataError
from saccade.geometry import Size

FINEST = 32
"""Cells along a side of the finest map of a pyramid at most."""


class Level(NamedTuple):
    """One map of several."""

    name: str
    """Name of its stage."""
    channels: int
    factor: int
    """How many times as fine as the last map it is."""


def levels_of(stages: Stages, finer: Sequence[str]) -> tuple[Level, ...]:
    """The maps of the stages ``finer``, the finest first, and of the last stage.

    Raises:
        ConfigError: there is no such stage, or its cells do not fit into those of the last.
    """
    last = stages.names[-1]
    found = [Level(name, stages.channels[stages.check_stage(name)], _factor(stages, name)) for name in finer]
    factors = [level.factor for level in found] + [1]
    if any(before <= after for before, after in pairwise(factors)):
        raise ConfigError(f"pyramid: {', '.join(finer)}: each stage must be coarser than the one before, '{last}' too")
    return (*found, Level(last, stages.channels[last], 1))


def finer_stages(stages: Stages, size: Size, most: int = 2) -> tuple[str, ...]:
    """The stages of a pyramid for pictures of ``size``: the last one of each resolution, the finest first.

    At most ``most`` of them, none with more than :data:`FINEST` cells along a side, and only those whose grid is a
    whole multiple of the last one; () for a network with one map.
    """
    grids = stages.grid(size)
    last = grids[stages.names[-1]]
    by_factor = {}
    for name, (height, width) in grids.items():
        factor = height // last[0]
        if (height, width) == (factor * last[0], factor * last[1]) and max(height, width) <= FINEST:
            by_factor[factor] = name  # a later stage of the same resolution takes the place
    chosen = sorted(factor for factor in by_factor if factor > 1 and factor == _factor(stages, by_factor[factor]))
    return tuple(by_factor[factor] for factor in reversed(chosen[:most]))


def folded_channels(levels: Sequence[Level]) -> int:
    """Channels of the folded map."""
    return sum(level.channels * level.factor**2 for level in levels)


def folded(stages: Stages, images: Tensor, levels: Sequence[Level], *, finer_only: bool = False) -> Tensor:
    """Pictures (B,3,H,W) → the maps of all ``levels`` as one, (B,C,h,w); ``finer_only`` leaves out the last."""
    maps, features, before = [], images, None
    for level in levels:
        features = stages.between(features, after=before, to=level.name)
        maps.append(features)
        before = level.name
    grid = tuple(maps[-1].shape[-2:])
    for level, found in zip(levels, maps):
        if tuple(found.shape[-2:]) != (level.factor * grid[0], level.factor * grid[1]):
            raise DataError(
                f"pyramid: stage '{level.name}' has {found.shape[-2]}×{found.shape[-1]} cells, and the last stage "
                f"{grid[0]}×{grid[1]}; they do not fit at this size of the picture; use 224×224"
            )
    parts = [F.pixel_unshuffle(found, level.factor) for level, found in zip(levels, maps)]
    return torch.cat(parts[:-1] if finer_only else parts, 1)


def unfolded(features: Tensor, levels: Sequence[Level]) -> list[Tensor]:
    """The maps (B,C,f·h,f·w) of the levels, from the folded one."""
    parts = torch.split(features, [level.channels * level.factor**2 for level in levels], 1)
    return [F.pixel_shuffle(part, level.factor) for part, level in zip(parts, levels)]


def _factor(stages: Stages, name: str) -> int:
    """How many times as fine as the last map that of a stage is."""
    return round(float(stages.frames[stages.names[-1]][0, 0] / stages.frames[name][0, 0]))
