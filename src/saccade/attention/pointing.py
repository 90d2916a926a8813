"""Pointing: attention over the cells of a map says where a spatial transformer cuts.

Papers: Seo et al. 2016 (arXiv:1606.02393), for the attention; Finn et al., "Deep Spatial Autoencoders for Visuomotor
Learning", 2016 (arXiv:1509.06113), for the point; Jaderberg et al. 2015 (arXiv:1506.02025), for the window.

=============  ==============================================================
Seo (2)-(4)    α = softmax g_att(f, q), f_att = Σ α f   :class:`saccade.attention.SoftAttention`
Finn           p = Σ_ij α_ij u_ij, the soft argmax      :func:`expected_point`
Jaderberg (2)  θ = [[e, 0, t_x], [0, e, t_y]]           :func:`square_window`
=============  ==============================================================

A linear layer on a flattened map (:mod:`saccade.attention.spatial_transformer`) must learn for every cell separately
what a 7 looks like; a scorer that all cells share learns it once. The weights also show what decided the crop.

The window keeps inside the picture: cells lie at u from −1 to 1, edge to edge, and t = (1 − e)·p. Its extent e is
smallest + (largest − smallest)·σ(·) of one number that the attended feature and the query decide. ``largest`` is well
below 1: the whole picture holds the answer in any case, so training would otherwise start by widening the window, and
in a window that shows everything no place is better than another.

Deviations from the papers: Jaderberg's Eq. (2) has no bounds; Finn's points have no query. The number of the extent
starts at a weight of 0, in the middle of its range, and follows at a tenth of the layer's pace, so that it does not
settle at an end before the window is in the right place.

Axes: B examples, C channels of the picture, F of the features, Q queries, H and W pixels, I and J cells.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.attention.soft import AttentionOutput, SoftAttention
from saccade.attention.spatial_transformer import crop_look, given_window
from saccade.errors import ConfigError, ShapeError
from saccade.geometry import Size
from saccade.trace import Look

_PACE = 0.1  # of the extent


class PointingOutput(NamedTuple):
    """Plain tensors of one crop and of the attention that led to it, fit for compiling and exporting."""

    crop: Tensor
    theta: Tensor
    attended: AttentionOutput


class PointingTransformer(nn.Module):
    """Picture (B,C,H,W), features (B,F,I,J) and a query vector (B,Q) → crop (B,C,h,w) and its look.

    Args:
        channels: F of the features.
        query_size: Q of the query vector.
        crop: (h, w) of what is cut out.
        hidden: units in which feature and query meet.
        smallest: extent of the smallest window, as a share of the picture.
        largest: extent of the largest.
        steered: whether what becomes of the crop also teaches the point; if not, whatever else learns from the
            attention does, and the crop teaches the extent alone.

    >>> transformer = PointingTransformer(16, 4, crop=(5, 6))
    >>> crop, look = transformer(torch.rand(2, 3, 11, 12), torch.rand(2, 16, 4, 4), torch.rand(2, 4))
    >>> crop.shape, look.kind, look.frame.shape
    (torch.Size([2, 3, 5, 6]), 'crop', torch.Size([2, 2, 3]))
    """

    def __init__(
        self,
        channels: int,
        query_size: int,
        *,
        crop: Size,
        hidden: int = 32,
        smallest: float = 0.1,
        largest: float = 0.5,
        steered: bool = True,
    ) -> None:
        super().__init__()
        if min(crop) < 1:
            raise ConfigError(f"crop: expected at least one cell each way, found {crop[0]}×{crop[1]}")
        if not 0 < smallest < largest <= 1:
            raise ConfigError(
                f"smallest, largest: windows are shares of the picture, 0 < smallest < largest ≤ 1, found {smallest} "
                f"and {largest}"
            )
        self.crop, self.smallest, self.largest, self.steered = crop, smallest, largest, steered
        self.attention = SoftAttention(channels, query_size, hidden=hidden)
        self.to_extent = nn.Linear(channels + query_size, 1)
        nn.init.zeros_(self.to_extent.weight)
        nn.init.zeros_(self.to_extent.bias)

    def attend(
        self,
        picture: Tensor,
        features: Tensor,
        query: Tensor,
        *,
        weights: Tensor | None = None,
        frame: Tensor | None = None,
    ) -> PointingOutput:
        """The act as plain tensors; coordinates are computed in float32 whatever the precision around them.

        ``weights`` (B,I,J) that are given take the place of the attention that points. A ``frame`` (B,2,3) that is
        given, cells of the crop → pixels of the picture, takes the place of the window.
        """
        if picture.dim() != 4 or picture.shape[0] != features.shape[0]:
            raise ShapeError("picture", f"({features.shape[0]},C,H,W)", picture.shape)
        attended = self.attention.attend(features, query, weights=weights)  # (B,F), (B,I,J)
        if frame is not None:
            theta = given_window(frame, self.crop, picture)  # (B,2,3)
            return PointingOutput(geometry.sample_theta(picture, theta, self.crop), theta, attended)
        with torch.autocast(features.device.type, enabled=False):
            known = torch.cat([attended.context, query], dim=1).to(self.to_extent.weight.dtype)  # (B,F+Q)
            opened = torch.sigmoid(_PACE * self.to_extent(known))  # (B,1)
            extent = self.smallest + (self.largest - self.smallest) * opened  # (B,1)
            points = attended.weights if self.steered else attended.weights.detach()  # (B,I,J)
            theta = square_window(expected_point(points.to(extent.dtype)), extent)  # (B,2,3)
        return PointingOutput(geometry.sample_theta(picture, theta, self.crop), theta, attended)

    def forward(
        self,
        picture: Tensor,
        features: Tensor,
        query: Tensor,
        *,
        name: str = "crop",
        weights: Tensor | None = None,
        frame: Tensor | None = None,
    ) -> tuple[Tensor, Look]:
        """Crop and look; the picture is taken as the network input, ``weights`` and ``frame`` as in :meth:`attend`."""
        pointed = self.attend(picture, features, query, weights=weights, frame=frame)
        return pointed.crop, crop_look(name, pointed.theta, self.crop, (picture.shape[-2], picture.shape[-1]))


def expected_point(weights: Tensor) -> Tensor:
    """Mean place (B,2), as (x, y), of weights (B,I,J) that add up to 1; the outermost cells lie at −1 and 1."""
    rows, columns = (_places(cells, weights) for cells in weights.shape[-2:])  # (I,), (J,)
    return torch.stack([weights.sum(1) @ columns, weights.sum(2) @ rows], dim=1)  # (B,2)


def _places(cells: int, like: Tensor) -> Tensor:
    """From −1 to 1; a single cell lies at 0."""
    end = 1.0 if cells > 1 else 0.0
    return torch.linspace(-end, end, cells, dtype=like.dtype, device=like.device)  # (cells,)


def square_window(point: Tensor, extent: Tensor) -> Tensor:
    """θ (B,2,3) of the upright window of an extent (B,1) at a point (B,2), whose ends ±1 are the picture's edges."""
    place = (1 - extent) * point  # (B,2)
    size = torch.diag_embed(extent.expand_as(place))  # (B,2,2)
    return torch.cat([size, place.unsqueeze(2)], dim=2)  # (B,2,3)
