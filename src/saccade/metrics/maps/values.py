"""What every score of a map shares: the checks, the scaling by the peak, and the order of pixels.

Axes: B pictures, H and W pixels. A map is (B,H,W), finite and ≥ 0; evidence is (B,H,W) bool.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError

_MANTISSA_BITS = 23  # of float32
LEVEL_BITS = 10  # thresholds per halving of the value: 2^10
LEVELS = (127 << LEVEL_BITS) + 1  # codes of 0 … 1: the exponent of a float32 is stored plus 127
"""Thresholds of the fixed grid on which precision and recall are counted: 130,049. The lowest is zero."""


def check_maps(maps: Tensor, name: str = "map") -> Tensor:
    """The maps (B,H,W) in float32 or float64, once they are known to be finite and nowhere negative.

    Raises:
        ShapeError: not three axes, or pictures without pixels.
        DataError: no tensor; or NaN, infinity or a negative value, and the message names the picture.
    """
    if not isinstance(maps, Tensor):
        raise DataError(f"{name}s: expected a tensor (B,H,W), found {type(maps).__name__}; torch.as_tensor makes one")
    if maps.dim() != 3 or maps.shape[1] * maps.shape[2] == 0:
        raise ShapeError(f"{name}s", "(B,H,W) with at least one pixel", maps.shape)
    if maps.dtype not in (torch.float32, torch.float64):
        maps = maps.float()  # half precision cannot sum ten thousand pixels
    low, high = maps.aminmax() if len(maps) else (0.0, 0.0)
    if low >= 0 and high < math.inf:  # one pass instead of four; NaN is neither
        return maps
    for broken, what, cure in (
        (~maps.isfinite(), "holds NaN or infinity", "look for a division by zero in what made it"),
        (maps < 0, "is negative somewhere", "clamp it or take its absolute value, and say which"),
    ):
        pictures = broken.flatten(1).any(1)  # (B,)
        if bool(pictures.any()):
            index = int(pictures.nonzero()[0, 0])
            total = int(pictures.sum())
            raise DataError(f"the {name} of picture {index} {what} ({total} of {len(maps)} pictures): {cure}")
    return maps


def check_mask(mask: Tensor, name: str) -> Tensor:
    """The mask (B,H,W), once it is known to be one."""
    if not isinstance(mask, Tensor):
        raise DataError(f"{name}: expected a tensor (B,H,W), found {type(mask).__name__}; torch.as_tensor makes one")
    if mask.dtype != torch.bool:
        raise DataError(f"{name}: expected a bool mask, found {mask.dtype}; compare it with a threshold first")
    if mask.dim() != 3 or mask.shape[1] * mask.shape[2] == 0:
        raise ShapeError(name, "(B,H,W) with at least one pixel", mask.shape)
    return mask


def check_evidence(evidence: Tensor, maps: Tensor, name: str = "evidence") -> Tensor:
    """The evidence (B,H,W) bool on the device of ``maps``, once it is known to lie on the same pixels."""
    if check_mask(evidence, name).shape != maps.shape:
        raise ShapeError(name, f"{tuple(maps.shape)} as the maps", evidence.shape)
    return evidence.to(maps.device)


def scale_to_peak(maps: Tensor) -> Tensor:
    """Each map divided by its own maximum, so that it peaks at exactly 1; a map of zeros stays as it is."""
    peak = maps.amax(dim=(-2, -1), keepdim=True)  # (B,1,1)
    return maps / torch.where(peak > 0, peak, torch.ones_like(peak))


def quantise(values: Tensor, bits: int) -> Tensor:
    """Non-negative numbers as int32 in the same order, equal where they agree to about ``bits`` binary digits.

    The bit pattern of a non-negative float32 sorts as the number does; rounding its last digits away merges values
    that differ only by the rounding of a projection, at every magnitude alike.
    """
    drop = _MANTISSA_BITS - bits
    pattern = values.abs().float().contiguous().view(torch.int32)  # abs: -0.0 has the sign bit set
    return (pattern + (1 << (drop - 1))) >> drop


def level_of(scaled: Tensor) -> Tensor:
    """The level of each value (…) between 0 and 1 on the fixed grid of thresholds, int32 in 0 … LEVELS - 1."""
    return quantise(scaled, LEVEL_BITS)


def dequantise(codes: Tensor, bits: int) -> Tensor:
    """The float32 numbers that stand for the codes of :func:`quantise`."""
    return (codes.to(torch.int32) << (_MANTISSA_BITS - bits)).view(torch.float32)


def where_defined(scores: Tensor, defined: Tensor) -> Tensor:
    """Scores (B,), NaN where ``defined`` (B,) is False: the one way in which this package says "no such score"."""
    return torch.where(defined, scores, torch.full_like(scores, torch.nan))
