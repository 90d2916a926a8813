"""The only place that rescales maps for display; each rule says what it did, so that a legend can.

A trace keeps the model's own weights. A screen shows 0 … 1. What lies between is one of two rules: each map by its
own peak, or several maps by their common peak. Zero always stays zero: a map is never stretched from its minimum, so
that a uniform map looks uniform and not empty.

The exception are masks that only add (1 + M): their zero means nothing, and they often lie close about one half. Such
a map is shown from its least to its peak where what it multiplies by, 1 + M, differs by half or more. A flatter one is
shown on a scale of that width about its middle, so that an almost even mask looks almost even.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from saccade.errors import DataError, ShapeError

MapLike = Tensor | npt.ArrayLike
Values = npt.NDArray[np.float32]
SPAN = 0.5
"""All colours together stand for at least this share of what a mask that only adds multiplies by."""


@dataclass(frozen=True)
class Scaled:
    """A map ready to be painted, with what was done to it."""

    values: Values
    """(H,W) between 0 and 1; a copy, never a view of the trace."""
    top: float
    """The weight that is shown as 1."""
    rule: str
    """In words, for a legend."""
    least: float = 0.0
    """The weight that is shown as 0."""
    is_fixed: bool = False
    """Whether the scale is wider than the map, which is nearly even."""

    @property
    def legend(self) -> str:
        """What the two ends of the colour bar mean: ``0 … 0.31, the map's own peak``."""
        return f"{self.least:.3g} … {self.top:.3g}, {self.rule}"


def by_own_peak(attention: MapLike) -> Scaled:
    """The map divided by its own maximum."""
    values = as_map(attention)
    return _scaled(values, float(values.max()), "the map's own peak")


def by_own_ends(attention: MapLike, *, base: float = 0.0) -> Scaled:
    """A mask that only adds, from its least to its own peak, or on a wider scale about its middle if it is flat.

    Args:
        attention: the mask M (H,W), or with ``base`` 0 the factors themselves.
        base: what is added to the mask before it multiplies.
    """
    values = as_map(attention)
    least, top = float(values.min()), float(values.max())
    middle = (least + top) / 2
    span = SPAN * abs(base + middle)
    if top - least >= span or span == 0:
        spread = np.float32(top - least) or np.float32(1)
        return Scaled((values - np.float32(least)) / spread, top, "the map's own peak", least)
    low, high = middle - span / 2, middle + span / 2
    rule = f"a fixed scale, as the map is nearly even: it goes from {least:.3g} to {top:.3g}"
    return Scaled((values - np.float32(low)) / np.float32(span), high, rule, low, is_fixed=True)


def by_shared_peak(maps: Sequence[MapLike]) -> list[Scaled]:
    """All maps divided by the one maximum over all of them, so that they can be compared with each other."""
    arrays = [as_map(attention) for attention in maps]
    top = max((float(values.max()) for values in arrays), default=0.0)
    return [_scaled(values, top, "the peak of all maps here") for values in arrays]


def as_map(attention: MapLike) -> Values:
    """One map as a float32 array (H,W) of its own; raises ShapeError or DataError when there is nothing to draw."""
    try:
        if isinstance(attention, Tensor):
            attention = attention.detach().cpu().float().numpy()
        values = np.array(attention, dtype=np.float32)  # a copy on purpose
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise DataError(f"map: expected an array of numbers, found {type(attention).__name__}") from error
    if values.ndim == 3 and values.shape[0] == 1:
        values = values[0]  # (H,W): a batch of one
    if values.ndim != 2 or values.size == 0:
        raise ShapeError("map", "(H,W) with at least one cell", values.shape)
    if not np.isfinite(values).all():
        raise DataError("map: it holds NaN or infinity, and cannot be drawn; validate() the trace to find the look")
    return values


def _scaled(values: Values, top: float, rule: str) -> Scaled:
    if values.min() < 0:
        rule += "; weights below 0 shown as 0"
    if top <= 0:
        return Scaled(np.zeros_like(values), max(top, 0.0), rule)
    return Scaled(np.clip(values / np.float32(top), 0.0, 1.0), top, rule)
