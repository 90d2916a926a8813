"""Residual attention: a mask that is computed from coarser views of a map, and that can only add to its features.

Paper: Wang et al., "Residual Attention Network for Image Classification", 2017 (arXiv:1704.06904), Section 3.

=========  ==============================================================================================
Eq. (1)    H_ic = M_ic · F_ic                  naive attention learning, ``residual=False``: :func:`apply_mask`
Eq. (3)    H_ic = (1 + M_ic) · F_ic            attention residual learning: :func:`apply_mask`
Eq. (4)    mixed, f1: M = σ(x_ic)              :func:`mixed_mask`
Eq. (5)    channel, f2: M = x_ic / ‖x_i‖       :func:`channel_mask`, ‖·‖ over the channels of a cell
Eq. (6)    spatial, f3: M = σ((x_ic − μ_c)/σ_c) :func:`spatial_mask`, mean and deviation over the cells of a channel
=========  ==============================================================================================

F is the trunk's output; x is what the soft mask branch (:class:`MaskBranch`, Section 3.2) makes of the trunk's input.
The branch is wired as the authors' published network definitions: a pooling and a unit at every level, one more unit at
the lowest, then up level by level, each time adding a unit of the map of the same size on the way down, then a unit
(not after the last step up). Two 1×1 convolutions end it.

Deviations from the paper: none in the equations. Maps are enlarged with cells as areas (``align_corners=False``),
unlike the authors' Caffe layer; a small number keeps f2 and f3 finite where all values are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.scores import Mechanism, check_given
from saccade.trace import Act, LookSpec

MaskType = Literal["mixed", "channel", "spatial"]
Unit = Callable[[int], nn.Module]
"""Channels → a module that keeps channels and size, such as a residual unit."""
EPSILON = 1e-5


def mixed_mask(scores: Tensor) -> Tensor:
    """Eq. (4): a sigmoid for each channel and cell."""
    return torch.sigmoid(scores)


def channel_mask(scores: Tensor) -> Tensor:
    """Eq. (5): the channels of each cell scaled to length 1. Where a cell lies has no say in how much it gets."""
    length: Tensor = torch.linalg.vector_norm(scores, dim=1, keepdim=True)  # (B,1,H,W)
    return scores / length.clamp(min=EPSILON)


def spatial_mask(scores: Tensor) -> Tensor:
    """Eq. (6): each channel normalised over its cells, then a sigmoid: how active a channel is has no say."""
    centred = scores - scores.mean((2, 3), keepdim=True)
    variance = centred.square().mean((2, 3), keepdim=True)  # (B,C,1,1)
    return torch.sigmoid(centred * torch.rsqrt(variance + EPSILON**2))


MASKS: dict[str, Callable[[Tensor], Tensor]] = {"mixed": mixed_mask, "channel": channel_mask, "spatial": spatial_mask}


def apply_mask(features: Tensor, mask: Tensor, *, residual: bool) -> Tensor:
    """Eq. (3), or Eq. (1): features and mask (B,C,H,W) → (B,C,H,W).

    F + M·F instead of (1 + M)·F: of few bits, 1 + M would keep only the first of M.
    """
    return torch.addcmul(features, mask, features) if residual else mask * features


def upsample_like(features: Tensor, like: Tensor) -> Tensor:
    """``features`` (B,C,h,w) at the height and width of ``like``, bilinear.

    Twice the size is made of whole slices, so that a GPU sums its gradient in a fixed order.
    """
    height, width = like.shape[-2:]
    if (height, width) == (2 * features.shape[-2], 2 * features.shape[-1]):
        cells = features.permute(0, 2, 3, 1)  # (B,h,w,C), as networks with the channels together have them in memory
        return _doubled(_doubled(cells, 1), 2).permute(0, 3, 1, 2)
    return F.interpolate(features, (height, width), mode="bilinear", align_corners=False)


def _doubled(features: Tensor, axis: int) -> Tensor:
    """Twice as many cells along ``axis``: cell k becomes ¾ of itself and ¼ of the neighbour on either side."""
    length = features.shape[axis]
    first, last = features.narrow(axis, 0, 1), features.narrow(axis, length - 1, 1)
    before = torch.cat([first, features.narrow(axis, 0, length - 1)], dim=axis)
    after = torch.cat([features.narrow(axis, 1, length - 1), last], dim=axis)
    pair = torch.stack([torch.lerp(features, before, 0.25), torch.lerp(features, after, 0.25)], dim=axis + 1)
    return pair.flatten(axis, axis + 1)


class MaskBranch(nn.Module):
    """The soft mask branch: features (B,C,H,W) → scores x (B,C,H,W).

    It goes down by half ``pools`` times, to the smallest map of the network; ``unit`` makes its units.
    """

    def __init__(self, channels: int, pools: int, unit: Unit) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.down = nn.ModuleList(unit(channels) for _ in range(pools))
        self.lowest = unit(channels)
        self.skip = nn.ModuleList(unit(channels) for _ in range(pools - 1))
        self.up = nn.ModuleList(unit(channels) for _ in range(pools - 1))
        self.head = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 1, bias=False),
        )

    def forward(self, features: Tensor) -> Tensor:
        """Down, then up again."""
        levels, here = [], features
        for unit in self.down:
            here = unit(self.pool(here))  # (B,C,H/2^k,W/2^k)
            levels.append(here)
        here = self.lowest(here)
        for level, skip, unit in reversed(list(zip(levels, self.skip, self.up))):
            here = unit(upsample_like(here, level) + skip(level))
        scores: Tensor = self.head(upsample_like(here, features))
        return scores


class ResidualAttention(Mechanism):
    """A mask on a trunk's output, from the trunk's input: (B,C,H,W) each → an act.

    With ``residual`` (1 + M)·F, else M·F; ``channels``, ``pools`` and ``unit`` are those of the :class:`MaskBranch`.

    >>> gate = ResidualAttention(8, 2, lambda channels: nn.Conv2d(channels, channels, 3, 1, 1))
    >>> context, look = gate(torch.randn(2, 8, 6, 10), torch.randn(2, 8, 6, 10))
    >>> context.shape, look.weights.shape, look.base
    (torch.Size([2, 8, 6, 10]), torch.Size([2, 6, 10]), 1.0)
    """

    look_name = "mask"

    def __init__(
        self, channels: int, pools: int, unit: Unit, *, mask_type: MaskType = "mixed", residual: bool = True
    ) -> None:
        super().__init__()
        self.branch = MaskBranch(channels, pools, unit)
        self.mask_type, self.residual = mask_type, residual

    def attend(self, before: Tensor, trunk: Tensor, /, *, weights: Tensor | None = None) -> Act:
        """The act: context and whole mask M (B,C,H,W); its weights are the mask in short.

        In short it is (B,H,W), the mean over channels; of a channel mask (B,C), the mean over cells. Given ``weights``
        replace the mask, whole or in short.
        """
        mask = MASKS[self.mask_type](self.branch(before))  # (B,C,H,W)
        full, short = self._given(weights, mask)
        context = apply_mask(trunk, full, residual=self.residual)
        return Act(context, self._short(full) if short is None else short, values=trunk, full=full)

    def spec(self, frame: Tensor | None) -> LookSpec:
        """What is constant about its look; without a frame it has no place on a picture, as a channel mask has none."""
        base = 1.0 if self.residual else 0.0
        if self.mask_type == "channel":
            return LookSpec("slots", "multiplier", "l2", base=base)
        return LookSpec("gate", "multiplier", "sigmoid", frame, base)

    def _given(self, weights: Tensor | None, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """The mask (B,C,H,W) to use, and its short form where that is what was given."""
        if weights is None:
            return mask, None
        if weights.dim() == mask.dim():
            check_given(weights, mask.shape, "weights")
            return weights.to(mask), None
        by_channel = self.mask_type == "channel"
        check_given(weights, mask.shape[:2] if by_channel else (mask.shape[0], *mask.shape[2:]), "weights")
        short = weights.to(mask)
        return (short[:, :, None, None] if by_channel else short[:, None]).expand_as(mask), short

    def _short(self, full: Tensor) -> Tensor:
        return full.mean((2, 3)) if self.mask_type == "channel" else full.mean(1)
