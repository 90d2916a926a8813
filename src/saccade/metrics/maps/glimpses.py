"""Where glimpses fell: the saliency there, and whether an object was there.

Paper: Welleck et al. 2017 (arXiv:1711.05165), Section 5: attn_saliency = (1/k) Σ_i S_t at glimpse i, averaged over all
time steps and pictures. The printed values (58.7 to 126.5) can only be those of a saliency that is not normalised, and
so depend on the scale of a backbone's activations; a saliency in 0..1 can be compared between backbones.

Axes: B pictures, T steps, k glimpses of a step, M objects, (h, w) cells. A step that does not count is NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import ShapeError


def at_glimpses(maps: Tensor, choice: Tensor, active: Tensor | None = None) -> Tensor:
    """The mean over a step's glimpses of the value of its map there: (B,T).

    Args:
        maps: (B,T,h,w), one map for each step; or (B,h,w), one for all of them.
        choice: (B,T,k) cells, numbered row by row.
        active: (B,T) steps that count; None: all.
    """
    if choice.dim() != 3:
        raise ShapeError("choice", "(B,T,k)", choice.shape)
    flat = _by_step(maps, choice.shape[1]).flatten(2).double()  # (B,T,hw)
    return _where(torch.take_along_dim(flat, choice, dim=2).mean(-1), active)


def at_random(maps: Tensor, steps: int, active: Tensor | None = None) -> Tensor:
    """What :func:`at_glimpses` is on average for glimpses at cells drawn evenly: (B,T)."""
    return _where(_by_step(maps, steps).flatten(2).double().mean(-1), active)


def most_salient(saliency: Tensor) -> Tensor:
    """The cell (B,T,1) of the highest value of each map (B,T,h,w): the glimpse of one who follows saliency alone."""
    return saliency.flatten(2).argmax(-1, keepdim=True)


def cells_in_boxes(boxes: Tensor, frame: Tensor, grid: geometry.Size) -> Tensor:
    """Which cells have their centre inside which box: (B,M,h,w) bool; none in a box that is NaN.

    Args:
        boxes: (B,M,4) xyxy, in the pixels that ``frame`` leads to.
        frame: (2,3) or (B,2,3), cells → pixels.
        grid: (h, w).
    """
    if boxes.dim() != 3 or boxes.shape[-1] != 4:
        raise ShapeError("boxes", "(B,M,4)", boxes.shape)
    return geometry.cells_in_boxes(boxes, frame.double(), grid)


def _by_step(maps: Tensor, steps: int) -> Tensor:
    """Maps (B,T,h,w), the same one at every step if there is only one."""
    if maps.dim() == 3:
        return maps.unsqueeze(1).expand(-1, steps, -1, -1)
    if maps.dim() != 4 or maps.shape[1] != steps:
        raise ShapeError("maps", f"(B,{steps},h,w) or (B,h,w)", maps.shape)
    return maps


def _where(values: Tensor, active: Tensor | None) -> Tensor:
    if active is None:
        return values
    if active.shape != values.shape:
        raise ShapeError("active", f"{tuple(values.shape)}", active.shape)
    return torch.where(active.bool(), values, torch.nan)
