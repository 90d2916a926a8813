"""Answers and maps of scenes that are rendered again with one thing changed.

**Answers.** The denominator is all pictures, also those whose first answer was wrong.

=================  ==========================================  ===================================================
score              what is changed                             1 for a picture whose …
=================  ==========================================  ===================================================
``causal_follow``  the target gets another answer              answer becomes the new truth
``causal_hold``    any other object is changed or removed      answer stays what it was, right or wrong
``swapped_query``  another object that is present is asked     answer is still the *original* truth (lower is better:
                                                               with five answers a model that reads the question
                                                               keeps about 0.20, a query-blind one about 0.418)
=================  ==========================================  ===================================================

**Maps and the scene.** Does the map lie on what was asked for? These scores never read an answer.

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
(:mod:`saccade.metrics.maps.localisation`). The other object should be about as large as the target, and moves at least
as long as a cell of the coarsest grid.

**Maps and the model.** An object is recoloured and the model is asked again: how far its answer moves is the effect of
that object on it.

===============  ===========================================================================================  ====
effect           e_o = mean over the other colours of o of TV(p, p′), p′ the answer to the recoloured scene   (E1)
``cause_top``    whether the object with the most mass is the one with the largest effect, where max e ≥ .1   (E2)
``cause_pairs``  share of pairs of objects with |Δe| ≥ .05 whose masses have the same order                   (E3)
``misplaced``    share of the mass on objects that lies on those with e < .05                                 (E4)
``off_objects``  share of the mass that lies on no object                                                     (E5)
===============  ===========================================================================================  ====

``cause_top`` and ``cause_pairs`` together are ``cause_rank``. Beside them stand the areas of the objects in place of
their masses: an even map ranks by area. Removing an object has an effect too, but makes a picture of a kind that no
model was trained on.

Every score is (B,), NaN where a map is all zeros. Axes: B pictures, N objects, K ways in which an object is changed, A
answers, H and W pixels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import DataError, check_alike
from saccade.metrics.labels import correct
from saccade.metrics.maps.localisation import mass_on, shares, total_variation, where_defined


def causal_follow(after: Tensor, new_truth: Tensor, old_truth: Tensor) -> Tensor:
    """1 where the answer (B,) about the re-rendered target is its new truth (B,), never the old one (B,)."""
    if bool((new_truth == old_truth).any()):
        raise DataError("new_truth: a re-rendered target has its old answer; give it another")
    return correct(after, new_truth)


TIE = 1e-6
"""Distances closer than this are equal up to the rounding of a projection."""


class Moved(NamedTuple):
    """Maps after one object of each picture was moved."""

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
    """Eq. (I1): how much more of the maps ``before`` (B,H,W) goes with the target than with another object (B,)."""
    return gained(before, target) - gained(before, other)


def map_turn(first: Tensor, second: Tensor, first_object: Tensor, second_object: Tensor) -> Tensor:
    """Eq. (I2): how much of the map (B,) turns to the object asked for, for two questions about one scene.

    Maps (B,H,W) of both questions, and the pixels (B,H,W) bool that each asks for.
    """
    to_second = mass_on(second, second_object) - mass_on(first, second_object)  # (B,)
    to_first = mass_on(first, first_object) - mass_on(second, first_object)  # (B,)
    return 0.5 * (to_second + to_first)


def map_specific(before: Tensor, target: Tensor, other: Tensor) -> Tensor:
    """Eq. (I3): 1 where the map moves more when the target changes than when another object does; tie: ½ (B,)."""
    return more(total_variation(before, target) - total_variation(before, other), TIE)


def map_hold(before: Tensor, after: Tensor) -> Tensor:
    """Eq. (I4): 1 − TV of the maps (B,H,W) before and after a change that was not asked about (B,)."""
    return 1 - total_variation(before, after)


def more(difference: Tensor, tie: float) -> Tensor:
    """1 where a difference (…) is above ``tie``, 0 where it is below −``tie``, ½ between; NaN stays NaN."""
    halves = (difference > tie).to(difference) + (difference >= -tie).to(difference)  # 0, 1 or 2
    return where_defined(halves / 2, ~difference.isnan())


CAUSE = 0.1
"""Least largest effect of a picture that counts as having a cause."""
APART = 0.05
"""Effects closer than this have no order; smaller effects count as none."""


def object_effects(before: Tensor, after: Tensor, present: Tensor) -> Tensor:
    """Eq. (E1): the effect of each object (B,N), NaN for absent objects.

    Args:
        before: probabilities (B,A) of the answers to the unchanged scenes.
        after: (B,N,K,A) the same with object n changed in the k-th way; not read for absent objects.
        present: (B,N) bool.
    """
    before = before[:, None, None]
    after = torch.where(present[..., None, None], after, before)  # what is not there changes nothing
    return where_defined(0.5 * (before - after).abs().sum(-1).mean(-1), present)


def cause_top(mass: Tensor, effects: Tensor) -> Tensor:
    """Eq. (E2): 1 where the object with the most mass has the largest effect (B,), NaN where no effect reaches .1.

    Objects tied for the most mass count by the share of them with the largest effect. ``mass`` (B,N) may be any rank;
    ``effects`` (B,N) are those of :func:`object_effects`, NaN for absent objects.
    """
    check_alike("effects", effects, mass)
    present = ~effects.isnan()  # (B,N)
    ranked = torch.where(present, effects, -1.0)  # (B,N)
    most = torch.where(present, mass, -1.0)  # (B,N)
    has_most = present & (most >= most.amax(1, keepdim=True) - TIE)  # (B,N)
    is_cause = present & (ranked >= ranked.amax(1, keepdim=True) - TIE)  # (B,N)
    agree = (has_most & is_cause).sum(1) / has_most.sum(1).clamp(min=1)  # (B,)
    return where_defined(agree.to(effects), (ranked.amax(1) >= CAUSE) & ~_no_mass(mass, present))


def cause_pairs(mass: Tensor, effects: Tensor) -> Tensor:
    """Eq. (E3): the share of pairs with |Δe| ≥ .05 that the masses (B,N) order alike (B,); a tie counts ½.

    NaN for a picture without such a pair. Arguments as in :func:`cause_top`.
    """
    check_alike("effects", effects, mass)
    present = ~effects.isnan()  # (B,N)
    by = effects[:, :, None] - effects[:, None, :]  # (B,N,N): e_n − e_m; NaN where either is not there
    counts = by >= APART  # each pair once, the larger effect first; False where it is NaN
    right = more(mass[:, :, None] - mass[:, None, :], TIE)  # (B,N,N)
    agreed = torch.where(counts, right, 0.0).sum(dim=(1, 2)) / counts.sum(dim=(1, 2)).clamp(min=1)  # (B,)
    return where_defined(agreed, counts.any(dim=2).any(dim=1) & ~_no_mass(mass, present))


def misplaced(maps: Tensor, masks: Tensor, effects: Tensor) -> Tensor:
    """Eq. (E4): the share of the mass on objects that lies on objects without an effect (B,).

    NaN if no object has an effect, or if no mass lies on objects. Masks (B,N,H,W) bool do not overlap; ``effects`` as
    in :func:`cause_top`.
    """
    mass = mass_on(maps, masks)  # (B,N)
    check_alike("effects", effects, mass)
    present = ~effects.isnan()  # (B,N)
    idle = present & (effects < APART)  # (B,N)
    on_objects = torch.where(present, mass, 0.0).sum(1)  # (B,)
    share = torch.where(idle, mass, 0.0).sum(1) / on_objects
    return where_defined(share, (effects >= APART).any(1) & (on_objects > 0))


def off_objects(maps: Tensor, masks: Tensor) -> Tensor:
    """Eq. (E5): the share of the map (B,) on no object of the masks (B,N,H,W) bool."""
    return (shares(maps) * ~masks.any(1)).sum(dim=(-2, -1))


def _no_mass(mass: Tensor, present: Tensor) -> Tensor:
    """Whether the masses (B,N) of present objects are unknown because the map was all zeros."""
    return (mass.isnan() & present).any(1)
