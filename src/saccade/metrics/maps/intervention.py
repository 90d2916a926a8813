"""Does the map go with what was asked for, when a scene is rendered again with one thing changed?

These scores read maps and never an answer. They say something *about the scene*: does the map lie on what was asked
for? A segmenter that knows the question passes them, whatever the model's answer rests on;
:mod:`saccade.metrics.maps.effects` asks that.

================  ====================================================================  ============================
score             definition                                                            noise, or blind to the query
================  ====================================================================  ============================
``map_follow``    ½[Δm_new − Δm_old] of the target moved, minus that of another         0
                  object moved, Eq. (I1)
``map_turn``      ½[m₂(q₂) − m₂(q₁) + m₁(q₁) − m₁(q₂)] of two questions, Eq. (I2)       0
``map_specific``  P(TV(target changed) > TV(other changed)), a tie counts ½, Eq. (I3)   ½
``map_hold``      1 − TV when something else changes, Eq. (I4)                          1 for a map that never moves
================  ====================================================================  ============================

m_o is the share of the map on object o, Δm what it became minus what it was, TV the distance of two maps
(:mod:`saccade.metrics.maps.mass`). ``map_hold`` is never to be shown alone: a constant map has 1. The other object
should be about as large as the target, and moves at least as long as a cell of the coarsest grid.

Every score is (B,), NaN where a map is all zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.maps.mass import mass_on, total_variation
from saccade.metrics.maps.values import where_defined

TIE = 1e-6
"""Distances that differ by less are equal: they differ by the rounding of a projection."""


class Moved(NamedTuple):
    """One object of each picture was moved."""

    maps: Tensor
    """(B,H,W) after the move."""
    old: Tensor
    """(B,H,W) bool: the pixels of the object before."""
    new: Tensor
    """(B,H,W) bool: its pixels after."""


def gained(before: Tensor, moved: Moved) -> Tensor:
    """½[Δm_new − Δm_old] (B,): how much of the map ``before`` (B,H,W) went with the object, −1 … 1."""
    change = [mass_on(moved.maps, mask) - mass_on(before, mask) for mask in (moved.new, moved.old)]  # (B,) each
    return 0.5 * (change[0] - change[1])


def map_follow(before: Tensor, target: Moved, other: Moved) -> Tensor:
    """Eq. (I1): how much more of the map (B,) goes with the target than with another object that is moved.

    Args:
        before: maps (B,H,W) of the unchanged scenes.
        target: the same questions after what is asked for was moved.
        other: after an object of like area was moved.
    """
    return gained(before, target) - gained(before, other)


def map_turn(first: Tensor, second: Tensor, first_object: Tensor, second_object: Tensor) -> Tensor:
    """Eq. (I2): how much of the map (B,) turns to the object that is asked for, for two questions about one scene.

    Args:
        first: maps (B,H,W) of the first question.
        second: maps (B,H,W) of the second.
        first_object: (B,H,W) bool: what the first question asks for.
        second_object: (B,H,W) bool: what the second asks for.
    """
    to_second = mass_on(second, second_object) - mass_on(first, second_object)  # (B,)
    to_first = mass_on(first, first_object) - mass_on(second, first_object)  # (B,)
    return 0.5 * (to_second + to_first)


def map_specific(before: Tensor, target: Sequence[Tensor], other: Sequence[Tensor]) -> Tensor:
    """Eq. (I3): whether the map moves more when the target changes than when another object does (B,).

    Args:
        before: maps (B,H,W) of the unchanged scenes.
        target: maps (B,H,W) after what is asked for was changed, one for each way (moved, removed).
        other: the same after another object was changed in the same ways.

    Returns:
        the share of the ways in which the first distance is the larger one; equal distances count ½.
    """
    if len(target) != len(other) or not target:
        raise DataError(
            f"map_specific: expected as many ways of changing the target as another object, and at least one; found "
            f"{len(target)} and {len(other)}"
        )
    apart = [total_variation(before, one) - total_variation(before, two) for one, two in zip(target, other)]  # (B,)
    return torch.stack([more(each, TIE) for each in apart]).mean(0)


def map_hold(before: Tensor, after: Tensor) -> Tensor:
    """Eq. (I4): 1 − TV of the maps (B,H,W) before and after something that was not asked for changed (B,)."""
    return 1 - total_variation(before, after)


def more(difference: Tensor, tie: float) -> Tensor:
    """1 where a difference (…) is above ``tie``, 0 where it is below −``tie``, ½ between; NaN stays NaN."""
    if not difference.is_floating_point():
        raise ShapeError("difference", "floating point numbers", difference.shape)
    halves = (difference > tie).to(difference) + (difference >= -tie).to(difference)  # 0, 1 or 2
    return where_defined(halves / 2, ~difference.isnan())
