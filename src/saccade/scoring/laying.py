"""Maps and masks brought to one size.

Axes: B maps, h and w cells of a map, H and W pixels of its truth.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.geometry import Size
from saccade.metrics.maps.baselines import Grid, Grids


def laid_over(maps: Tensor, shown: Size) -> tuple[Tensor, Grids | None]:
    """Maps (B,h,w) over pictures of that size, and the grid they were made on where it is coarser than pixels."""
    size = (maps.shape[-2], maps.shape[-1])
    if size == shown:
        return maps, None
    if size[0] >= shown[0] and size[1] >= shown[1]:
        return F.adaptive_avg_pool2d(maps[:, None], shown)[:, 0], None
    frame = geometry.scale_shift((shown[1] / size[1], shown[0] / size[0]), (0.0, 0.0))
    return geometry.project(maps, frame, shown), Grids((Grid(frame, size),))


def reduced(masks: Tensor, size: Size) -> Tensor:
    """Masks (B,H,W) at another size: a pixel is in a mask where half of it was."""
    return F.adaptive_avg_pool2d(masks.float()[:, None], size)[:, 0] >= 0.5
