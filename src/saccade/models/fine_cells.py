"""Lower-level activations at the cells of a coarser stage: what a glimpse there sees in more detail.

Paper: Welleck et al., 2017 (arXiv:1711.05165), Section 5.2, names "using lower-level activations at attended areas" as
a way past its 7×7 cells, and leaves it at that. Here each coarse cell carries the r×r finer cells that lie under it,
found by the frames of both stages and read bilinearly, as further channels.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.backbones import Stages
from saccade.errors import ConfigError


class FineCells(nn.Module):
    """Features of a finer stage (B,F,H,W) → (B,F·r²,h,w) on the grid of a backbone's last stage."""

    theta: Tensor

    def __init__(self, backbone: Stages, stage: str, size: geometry.Size) -> None:
        super().__init__()
        last = backbone.names[-1]
        if backbone.check_stage(stage) == last:
            raise ConfigError(f"fine_stage: '{last}' is the stage that is attended already; name an earlier one")
        coarse, fine = backbone.frames[last], backbone.frames[stage]
        grids = backbone.grid(size)
        self.ratio = max(1, round(float(coarse[0, 0] / fine[0, 0])))
        self.channels = backbone.channels[stage] * self.ratio**2
        self.grid = (grids[last][0] * self.ratio, grids[last][1] * self.ratio)
        divided = geometry.compose(coarse, geometry.scale_shift((1 / self.ratio,) * 2, (0.0, 0.0)))  # → input pixels
        theta = geometry.frame_to_theta(geometry.compose(geometry.invert(fine), divided), self.grid, grids[stage])
        self.register_buffer("theta", theta.float(), persistent=False)  # (2,3)

    def forward(self, features: Tensor) -> Tensor:
        """The finer features under each coarse cell, as channels."""
        theta = self.theta.expand(features.shape[0], 2, 3)  # (B,2,3)
        return F.pixel_unshuffle(geometry.sample_theta(features, theta, self.grid), self.ratio)  # (B,F·r²,h,w)
