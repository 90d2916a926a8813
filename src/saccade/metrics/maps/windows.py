"""Other places for a crop: windows of the same sides that leave a target out, or still hold it.

Places are drawn from an even lattice in the picture. Boxes are xyxy in pixels. Axes: B crops, K places.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.geometry import Size

_PLACES = 24
"""Places in a row of the lattice."""


def places_of(sides: Tensor, picture: Size) -> Tensor:
    """Boxes (B,K,4) of ``sides`` (B,2), width and height, all over a ``picture``."""
    room = torch.tensor([picture[1], picture[0]], dtype=torch.float64, device=sides.device) - sides.double()  # (B,2)
    step = torch.linspace(0, 1, _PLACES, dtype=torch.float64, device=sides.device)  # (k,)
    grid = torch.stack(torch.meshgrid(step, step, indexing="xy"), -1).flatten(0, 1)  # (K,2)
    corner = grid * room.clamp(min=0)[:, None]  # (B,K,2)
    return torch.cat([corner, corner + sides.double()[:, None]], -1)


def beside(crops: Tensor, targets: Tensor, picture: Size, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Boxes (B,4) as large as ``crops`` (B,4) without any of ``targets`` (B,4), and whether there are such (B,)."""
    boxes, to = places_of(crops[:, 2:] - crops[:, :2], picture), targets.double()[:, None]
    apart = (boxes[..., 2:] <= to[..., :2]) | (boxes[..., :2] >= to[..., 2:])  # (B,K,2)
    return _drawn(boxes, apart.any(-1), seed)


def over(
    crops: Tensor, targets: Tensor, picture: Size, *, within: Tensor | None = None, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Boxes (B,4) as large as ``crops`` that hold all of ``targets``, and whether there are any (B,).

    Args:
        crops: (B,4).
        targets: (B,4).
        picture: (H, W).
        within: (B,4) boxes that they must lie in; None: the picture.
        seed: of the draw.
    """
    boxes, to = places_of(crops[:, 2:] - crops[:, :2], picture), targets.double()[:, None]
    fits = (boxes[..., :2] <= to[..., :2]).all(-1) & (boxes[..., 2:] >= to[..., 2:]).all(-1)  # (B,K)
    if within is not None:
        outer = within.double()[:, None]
        fits &= (boxes[..., :2] >= outer[..., :2]).all(-1) & (boxes[..., 2:] <= outer[..., 2:]).all(-1)
    return _drawn(boxes, fits, seed)


def round_about(targets: Tensor, sides: Tensor, picture: Size) -> Tensor:
    """Boxes (B,4) of ``sides`` (B,2) with the middle of ``targets`` (B,4) in theirs, moved inside the picture."""
    middle, half = (targets[:, :2] + targets[:, 2:]).double() / 2, sides.double() / 2  # (B,2)
    limit = torch.tensor([picture[1], picture[0]], dtype=torch.float64, device=targets.device)  # (2,)
    middle = torch.minimum(torch.maximum(middle, half), (limit - half).maximum(half))
    return torch.cat([middle - half, middle + half], -1)


def grown(boxes: Tensor, by: float, least: float) -> Tensor:
    """Sides (B,2) of ``boxes`` (B,4), ``by`` times as long and ``least`` pixels at least."""
    return ((boxes[:, 2:] - boxes[:, :2]).double() * by).clamp(min=least)


def _drawn(boxes: Tensor, fits: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """One of the ``boxes`` (B,K,4) that fit (B,K), and whether one does (B,)."""
    chance = torch.rand(fits.shape, generator=torch.Generator().manual_seed(seed)).to(boxes.device)  # (B,K)
    chosen = torch.where(fits, chance, -1.0).argmax(1)  # (B,)
    return boxes[torch.arange(len(boxes), device=boxes.device), chosen], fits.any(1)
