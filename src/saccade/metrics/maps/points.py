"""Where a map looks, compared with one clicked point: near is within a share of the asked object's size.

Maps are (B,H,W) ≥ 0 on the pixels of the picture, points (B,2) as (x, y) in its pixels, NaN where nothing was clicked.
A score of a picture without a click, or of one whose click lies outside it with all its neighbourhood, is NaN.

* ``pointing_at``: whether the maximum lies near the click; higher is better;
* ``attention_near``: the share of all attention near the click; higher is better;
* ``distance``: from the maximum to the click, in diagonals of the object's box; lower is better.

Maps that know only a position, to compare with: :func:`at_points` on the model's grid, :func:`exactly_at` to the pixel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.errors import ConfigError, ShapeError
from saccade.geometry import Size
from saccade.metrics.maps.localisation import TIE, pointing, true_positive_strength
from saccade.metrics.maps.values import check_maps, scale_to_peak, where_defined

NEAR = 0.1
"""How far near reaches, as a share of the diagonal of the object's box."""


def diagonals(boxes: Tensor, size: Size) -> Tensor:
    """The diagonal (B,) of each box (B,4) xyxy; where there is none (NaN), that of the picture of ``size`` (H, W)."""
    if boxes.dim() != 2 or boxes.shape[1] != 4:
        raise ShapeError("boxes", "(B,4)", boxes.shape)
    found = torch.linalg.vector_norm(boxes[:, 2:] - boxes[:, :2], dim=1)  # (B,)
    return torch.where(found > 0, found, torch.full_like(found, float(size[0] ** 2 + size[1] ** 2) ** 0.5))


def disc(points: Tensor, radius: Tensor, size: Size) -> Tensor:
    """The pixels (B,H,W) bool whose centres lie within ``radius`` (B,) of ``points`` (B,2); none where a point is NaN.

    The pixel that holds the point belongs to it however small the radius.
    """
    if points.dim() != 2 or points.shape[1] != 2:
        raise ShapeError("points", "(B,2)", points.shape)
    if radius.shape != points.shape[:1]:
        raise ShapeError("radius", f"({len(points)},)", radius.shape)
    if not bool((radius > 0).all()):
        raise ConfigError("radius: must be above 0 for every picture")
    offset = _from_points(points, size)  # (B,H,W,2)
    within: Tensor = torch.linalg.vector_norm(offset, dim=-1) <= radius[:, None, None]  # (B,H,W)
    return within | (offset.abs() <= 0.5).all(-1)


def pointing_at(maps: Tensor, points: Tensor, radius: Tensor) -> Tensor:
    """Whether the maximum of each map lies within ``radius`` (B,) of its point (B,); of tied maxima, the fraction."""
    return pointing(maps, disc(points, radius, _size(maps)))


def attention_near(maps: Tensor, points: Tensor, radius: Tensor) -> Tensor:
    """The share (B,) of all attention that lies within ``radius`` (B,) of each point."""
    return true_positive_strength(maps, disc(points, radius, _size(maps)))


def distance(maps: Tensor, points: Tensor, unit: Tensor) -> Tensor:
    """From the maximum of each map to its point, in ``unit`` (B,) pixels: (B,); of tied maxima, the mean.

    A map without a maximum, constant or zero, is as far away as a pixel drawn at random.
    """
    return _distance(maps, points, unit, _away(points, _size(maps)))


def _distance(maps: Tensor, points: Tensor, unit: Tensor, away: Tensor) -> Tensor:
    """:func:`distance`, given how far ``away`` (B,H,W) every pixel is from the point."""
    maps = check_maps(maps)
    if unit.shape != maps.shape[:1]:
        raise ShapeError("unit", f"({len(maps)},)", unit.shape)
    peak = maps.amax(dim=(-2, -1), keepdim=True)  # (B,1,1)
    tied = (scale_to_peak(maps) >= 1 - TIE) | (peak == 0)  # (B,H,W)
    mean = (away * tied).sum(dim=(-2, -1)) / tied.sum(dim=(-2, -1))  # (B,)
    return where_defined(mean / unit, ~points.isnan().any(1))


@dataclass(frozen=True)
class Clicks:
    """One click for each map: how near it a map looks."""

    points: Tensor
    """(B,2) as (x, y); NaN where nothing was clicked."""
    diagonal: Tensor
    """(B,) of the object's box, in pixels."""
    mask: Tensor
    """(B,H,W) bool: what is near the click."""
    away: Tensor
    """(B,H,W): from the click to every pixel, 0 where nothing was clicked; the same for every map that is scored."""

    @classmethod
    def at(cls, points: Tensor, boxes: Tensor, size: Size) -> Clicks:
        """Clicks at ``points`` (B,2) on objects in ``boxes`` (B,4), both NaN where unknown, on maps of ``size``."""
        diagonal = diagonals(boxes, size)  # (B,)
        return cls(points, diagonal, disc(points, NEAR * diagonal, size), _away(points, size))

    @property
    def are_there(self) -> bool:
        """Whether any example has one."""
        return not bool(self.points.isnan().all())

    def scores(self, maps: Tensor) -> dict[str, Tensor]:
        """``pointing_at``, ``attention_near`` and ``distance`` (B,), see the module."""
        return {
            "pointing_at": pointing(maps, self.mask),
            "attention_near": true_positive_strength(maps, self.mask),
            "distance": _distance(maps, self.points, self.diagonal, self.away),
        }

    def only(self, known: Tensor) -> Clicks:
        """Those of the examples where ``known`` (B,) is True."""
        points = torch.where(known[:, None], self.points, torch.nan)
        return replace(self, points=points, mask=self.mask & known[:, None, None])


def at_points(points: Tensor, frame: Tensor, grid: Size, size: Size) -> Tensor:
    """All weight on the one cell nearest to each point, laid over the picture: (B,H,W).

    Args:
        points: (B,2) in pixels of the picture; a map of zeros where NaN.
        frame: cells → pixels of the picture, (2,3) or (B,2,3).
        grid: (h, w) of the cells.
        size: (H, W) of the picture.
    """
    cells = geometry.apply(geometry.invert(frame), points.nan_to_num()) - 0.5  # (B,2) as (column, row), centres whole
    limit = torch.tensor([grid[1] - 1, grid[0] - 1], device=cells.device)
    column, row = torch.minimum(cells.round().clamp(min=0), limit).long().unbind(-1)  # (B,) each
    weights = torch.unflatten(F.one_hot(row * grid[1] + column, grid[0] * grid[1]).float(), 1, grid)  # (B,h,w)
    clicked = ~points.isnan().any(1)  # (B,)
    return geometry.project(weights * clicked[:, None, None].to(weights), frame, size)


def exactly_at(points: Tensor, size: Size) -> Tensor:
    """The one pixel (B,H,W) that holds each point, brought inside the picture; a map of zeros where NaN."""
    limit = torch.tensor([size[1] - 1, size[0] - 1], device=points.device)
    column, row = torch.minimum(points.nan_to_num().floor().clamp(min=0), limit).long().unbind(-1)  # (B,) each
    one = torch.unflatten(F.one_hot(row * size[1] + column, size[0] * size[1]), 1, size)  # (B,H,W)
    return one.float() * (~points.isnan().any(1))[:, None, None]


def _from_points(points: Tensor, size: Size) -> Tensor:
    """From each point to the centre of every pixel, as (x, y): (B,H,W,2)."""
    rows, columns = (torch.arange(pixels, device=points.device) + 0.5 for pixels in size)
    centres = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)  # (H,W,2)
    return centres - points[:, None, None, :]


def _away(points: Tensor, size: Size) -> Tensor:
    """From each point to the centre of every pixel, in pixels (B,H,W); 0 where a point is NaN."""
    away: Tensor = torch.linalg.vector_norm(_from_points(points, size), dim=-1)  # (B,H,W)
    return away.nan_to_num()


def _size(maps: Tensor) -> Size:
    if maps.dim() != 3:
        raise ShapeError("maps", "(B,H,W) with at least one pixel", maps.shape)
    return maps.shape[1], maps.shape[2]
