"""How much of a map lies where, and how far two maps are apart.

A map (B,H,W) is read as shares: it is divided by its sum, so that all pixels of a picture sum to 1. A map of zeros has
no shares, so what is asked of it is NaN.

=========  ====================================  =======================
Eq. (M1)   m_o = Σ_{x in o} a(x) / Σ_x a(x)      :func:`mass_on`
Eq. (M2)   TV(a, b) = ½ Σ_x |a(x)/Σa − b(x)/Σb|  :func:`total_variation`
=========  ====================================  =======================

Axes: B pictures, N objects, H and W pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.errors import ShapeError
from saccade.metrics.maps.values import check_maps, check_mask


def shares(maps: Tensor, name: str = "map") -> Tensor:
    """The maps (B,H,W) divided by their sums; NaN everywhere in a map of zeros.

    >>> shares(torch.tensor([[[1.0, 3.0]]])).tolist()
    [[[0.25, 0.75]]]
    """
    maps = check_maps(maps, name)
    return maps / maps.sum(dim=(-2, -1), keepdim=True)  # 0 / 0 is NaN


def mass_on(maps: Tensor, masks: Tensor) -> Tensor:
    """The share of each map on a mask, Eq. (M1): (B,) of masks (B,H,W), (B,N) of the masks (B,N,H,W) of N objects.

    Args:
        maps: (B,H,W), finite and nowhere negative.
        masks: bool, on the same pixels.
    """
    told = shares(maps)  # (B,H,W)
    if masks.dim() == 3:
        check_mask(masks, "masks")
    elif masks.dim() != 4 or masks.dtype != torch.bool:
        raise ShapeError("masks", "(B,H,W) or (B,N,H,W) bool", masks.shape)
    if masks.shape[0] != maps.shape[0] or masks.shape[-2:] != maps.shape[-2:]:
        raise ShapeError("masks", f"the pixels of the maps {tuple(maps.shape)}", masks.shape)
    each = masks.flatten(-2).to(told)  # (B,[N,]P)
    return torch.einsum("b...p,bp->b...", each, told.flatten(1))


def total_variation(one: Tensor, other: Tensor) -> Tensor:
    """Eq. (M2): how far two maps (B,H,W) of each picture are apart, 0 … 1; NaN where either is all zeros.

    >>> total_variation(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[1.0, 3.0]]])).tolist()
    [0.75]
    """
    if one.shape != other.shape:
        raise ShapeError("other", f"{tuple(one.shape)} as the first", other.shape)
    return 0.5 * (shares(one) - shares(other)).abs().sum(dim=(-2, -1))
