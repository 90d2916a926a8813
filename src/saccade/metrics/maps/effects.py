"""Which objects does the answer depend on, and does the map lie on them?

An object is recoloured and the model is asked again: how far its answer moves is the effect of that object on it. These
scores set a map beside the effects. They say something *about the model*: a map that lies on what was asked for loses
where the answer rests on something else.

===============  ===========================================================================================  ====
effect           e_o = mean over the other colours of o of TV(p, p′), p′ the answer to the recoloured scene   (E1)
``cause_top``    whether the object with the most mass is the one with the largest effect, where max e ≥ .1   (E2)
``cause_pairs``  share of pairs of objects with |Δe| ≥ .05 whose masses have the same order                   (E3)
``misplaced``    share of the mass on objects that lies on those with e < .05                                 (E4)
``off_objects``  share of the mass that lies on no object                                                     (E5)
===============  ===========================================================================================  ====

``cause_top`` and ``cause_pairs`` together are ``cause_rank``. Beside them stand the areas of the objects in place of
their masses: an even map ranks by area. Removing an object also has an effect, yet it makes a picture of a kind that
no model was trained on; so recolouring is what counts.

Axes: B pictures, N objects, K ways in which an object is changed, A answers, H and W pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.maps.intervention import TIE, more
from saccade.metrics.maps.mass import mass_on, shares
from saccade.metrics.maps.values import where_defined

CAUSE = 0.1
"""The largest effect of a picture must be at least this: else nothing in it is a cause."""
APART = 0.05
"""Effects that differ by less have no order; an object with a smaller effect has none."""


def answer_shift(before: Tensor, after: Tensor) -> Tensor:
    """TV(p, p′) (…): how far the answer moved, 0 … 1, of probabilities (…,A) that sum to 1.

    >>> answer_shift(torch.tensor([0.5, 0.5]), torch.tensor([0.75, 0.25])).item()
    0.25
    """
    if before.shape[-1] != after.shape[-1]:
        raise ShapeError("after", f"(…,{before.shape[-1]}) as before", after.shape)
    for name, told in (("before", before), ("after", after)):
        sums = told.double().sum(-1)
        if bool(((sums - 1).abs() > 1e-3).any()) or bool((told < 0).any()):
            raise DataError(f"{name}: expected probabilities of the answers, ≥ 0 with a sum of 1; apply softmax first")
    return 0.5 * (before - after).abs().sum(-1)


def object_effects(before: Tensor, after: Tensor, present: Tensor) -> Tensor:
    """Eq. (E1): the effect of each object (B,N), NaN where none is present.

    Args:
        before: probabilities (B,A) of the answers to the unchanged scenes.
        after: (B,N,K,A) the same with object n changed in the k-th way; not read where no object is present.
        present: (B,N) bool.
    """
    if after.dim() != 4 or after.shape[:2] != present.shape or after.shape[2] == 0:
        raise ShapeError("after", f"{tuple(present.shape)} and then (K,A) with at least one way", after.shape)
    after = torch.where(present[..., None, None], after, before[:, None, None])  # what is not there changes nothing
    return where_defined(answer_shift(before[:, None, None], after).mean(-1), present)


def cause_top(mass: Tensor, effects: Tensor) -> Tensor:
    """Eq. (E2): 1 where the object with the most mass has the largest effect (B,), NaN where no effect reaches .1.

    Args:
        mass: of each object (B,N), or its area, or any other rank; larger is more.
        effects: of :func:`object_effects` (B,N), NaN where no object is present.

    Returns:
        where k objects share the most mass, the share of them that have the largest effect.
    """
    present = _checked(mass, effects)
    known = torch.where(present, effects, -1.0)  # (B,N)
    most = torch.where(present, mass, -1.0)  # (B,N)
    has_most = present & (most >= most.amax(1, keepdim=True) - TIE)  # (B,N)
    is_cause = present & (known >= known.amax(1, keepdim=True) - TIE)  # (B,N)
    agree = (has_most & is_cause).sum(1) / has_most.sum(1).clamp(min=1)  # (B,)
    return where_defined(agree.to(effects), (known.amax(1) >= CAUSE) & ~_no_mass(mass, present))


def cause_pairs(mass: Tensor, effects: Tensor) -> Tensor:
    """Eq. (E3): the share of pairs with |Δe| ≥ .05 that the masses (B,N) put in the same order (B,); a tie counts ½.

    NaN for a picture that has no such pair. Arguments are those of :func:`cause_top`.
    """
    present = _checked(mass, effects)
    by = effects[:, :, None] - effects[:, None, :]  # (B,N,N): e_n − e_m; NaN where either is not there
    counts = by >= APART  # each pair once, the larger effect first; False where it is NaN
    right = more(mass[:, :, None] - mass[:, None, :], TIE)  # (B,N,N)
    agreed = torch.where(counts, right, 0.0).sum(dim=(1, 2)) / counts.sum(dim=(1, 2)).clamp(min=1)  # (B,)
    return where_defined(agreed, counts.any(dim=2).any(dim=1) & ~_no_mass(mass, present))


def misplaced(maps: Tensor, masks: Tensor, effects: Tensor) -> Tensor:
    """Eq. (E4): the share of the mass on objects that lies on objects without an effect (B,).

    NaN where no object has an effect, so there is no right place, and where nothing of the map lies on an object.

    Args:
        maps: (B,H,W).
        masks: (B,N,H,W) bool of the objects; they do not overlap.
        effects: of :func:`object_effects` (B,N), NaN where no object is present.
    """
    mass = mass_on(maps, masks)  # (B,N)
    present = _checked(mass, effects)
    idle = present & (effects < APART)  # (B,N)
    on_objects = torch.where(present, mass, 0.0).sum(1)  # (B,)
    share = torch.where(idle, mass, 0.0).sum(1) / on_objects
    return where_defined(share, (effects >= APART).any(1) & (on_objects > 0))


def off_objects(maps: Tensor, masks: Tensor) -> Tensor:
    """Eq. (E5): the share of the map (B,) that lies on no object of the masks (B,N,H,W) bool."""
    return (shares(maps) * ~masks.any(1)).sum(dim=(-2, -1))


def _checked(mass: Tensor, effects: Tensor) -> Tensor:
    """Which objects (B,N) are present, once masses and effects are known to be of the same ones."""
    if mass.shape != effects.shape or effects.dim() != 2:
        raise ShapeError("effects", f"(B,N) as the masses {tuple(mass.shape)}", effects.shape)
    return ~effects.isnan()


def _no_mass(mass: Tensor, present: Tensor) -> Tensor:
    """Whether the masses (B,N) of the objects present are unknown: the map was all zeros."""
    return (mass.isnan() & present).any(1)
