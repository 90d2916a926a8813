"""Answers and maps of scenes that are rendered again with one thing changed.

Does the answer follow the object that was asked about, and hold when anything else changes?

Scenes are re-rendered with one thing changed, and the model is asked again:

=================  ==========================================  ===================================================
score              what is changed                             1 for a picture whose …
=================  ==========================================  ===================================================
``causal_follow``  the target gets another answer              answer becomes the new truth
``causal_hold``    any other object is changed or removed      answer stays what it was, right or wrong
``swapped_query``  another object that is present is asked     answer is still the *original* truth (lower is better:
                                                               with five answers a model that reads the question
                                                               keeps about 0.20, a query-blind one about 0.418)
=================  ==========================================  ===================================================

**The denominator is all pictures**, also those whose first answer was wrong. Every score is (B,), for
``saccade.metrics.intervals``.

Does the map go with what was asked for, when a scene is rendered again with one thing changed?

These scores read maps and never an answer. They say something *about the scene*: does the map lie on what was asked
for? A segmenter that knows the question passes them, whatever the model's answer rests on;
:mod:`saccade.metrics.maps.interventions` asks that.

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
(:mod:`saccade.metrics.maps.localisation`). ``map_hold`` is never to be shown alone: a constant map has 1. The other
object should be about as large as the target, and moves at least as long as a cell of the coarsest grid.

Every score is (B,), NaN where a map is all zeros.

Which objects does the answer depend on, and does the map lie on them?

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

Maps of scenes and of their twins, scored beside rivals, in two groups that are kept apart.

A twin is a scene that is rendered again with one thing changed. What is scored:

==========  =============================================================================  =============================
group       scores                                                                         asks
==========  =============================================================================  =============================
``scene``   ``map_follow``, ``map_turn``, ``map_specific``, ``map_hold``                   does the map lie on what was
            (:mod:`saccade.metrics.maps.interventions`)                                     asked for?
``model``   ``cause_top``, ``cause_pairs``, ``misplaced``, ``off_objects``                 does the map say what the
            (:mod:`saccade.metrics.maps.interventions`), ``edit_necessity``,                     answer rests on?
            ``edit_sufficiency`` (:mod:`saccade.metrics.maps.edits`)
==========  =============================================================================  =============================

Rivals have the same scores of other maps:

===================  =============================================================================================
``foreground``       the model's map, times "this pixel is brighter than 5 %" (:func:`foreground`)
``shuffled``         the model's maps of another picture and of its twins
``uniform``          an even map on the model's grids
``centre_gaussian``  a blob in the middle
``target_mask``      the pixels of what is asked for: a segmenter that knows the question and nothing of the model
``grid_oracle``      the map of the model's grids with the largest share on one object: for ``scene`` what is asked for,
                     for ``model`` the one with the largest effect. It bounds that share, and none of the scores here:
                     it knows nothing of the other objects, so a model can have more ``cause_pairs``
``object_area``      for ``cause_top`` and ``cause_pairs`` alone: the areas of the objects in place of their masses
``random_cells``     for edits alone: as many cells elsewhere, drawn at random
``heaviest_cells``   for edits alone: as many cells elsewhere, the heaviest
===================  =============================================================================================

Where nothing is left to look at (what is asked for was removed) an oracle and a mask are even maps.

Everything here is a function of maps: no model is needed. Axes: B questions, N objects, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.metrics.intervals import ColumnBuffer, Values
from saccade.metrics.labels import correct
from saccade.metrics.maps import baselines
from saccade.metrics.maps.baselines import Grids
from saccade.metrics.maps.edits import EditScores
from saccade.metrics.maps.localisation import mass_on, shares, total_variation, where_defined
from saccade.metrics.maps.scorer import can_exchange
from saccade.metrics.result import Part


def causal_follow(after: Tensor, new_truth: Tensor, old_truth: Tensor) -> Tensor:
    """1 where the answer to the re-rendered target is its new truth (B,).

    Args:
        after: answer ids after the target was re-rendered, (B,).
        new_truth: what the target now is, (B,).
        old_truth: what it was, (B,); must differ everywhere, or there is nothing to follow.
    """
    same = new_truth == old_truth
    if bool(same.any()):
        index = int(same.nonzero()[0, 0])
        raise DataError(
            f"picture {index}: the re-rendered target has its old answer {int(old_truth[index])}; give it another"
        )
    return correct(after, new_truth)


def causal_hold(before: Tensor, after: Tensor) -> Tensor:
    """1 where the answer (B,) is the same before and after something other than the target was changed."""
    return correct(after, before)


def swapped_query(swapped: Tensor, truth: Tensor) -> Tensor:
    """1 where the answer to a question about *another* object is still the original truth (B,).

    Args:
        swapped: answer ids to the swapped question, (B,).
        truth: true answer ids of the original question, (B,). The other object may share it by chance.
    """
    return correct(swapped, truth)


@dataclass(frozen=True)
class CausalAnswers:
    """What was answered about a batch of scenes and their re-renderings, (B,) ids each; None: not asked."""

    truth: Tensor
    """The true answers."""
    before: Tensor
    """To the scenes as first rendered."""
    target_changed: Tensor | None = None
    """After the target was re-rendered with another answer."""
    new_truth: Tensor | None = None
    """Those other answers."""
    others_changed: Mapping[str, Tensor] = field(default_factory=dict)
    """For each way of changing another object, such as "recoloured" and "removed"."""
    other_query: Tensor | None = None
    """To a question about another object that is present."""


def scores_of_answers(answers: CausalAnswers) -> dict[str, Tensor]:
    """Every score that the answers allow, (B,) each.

    Returns:
        ``accuracy``; ``causal_follow``; ``causal_hold_<way>`` for each way of changing another object and
        ``causal_hold``, their mean for each picture; ``swapped_query``.
    """
    scores = {"accuracy": correct(answers.before, answers.truth)}
    if answers.target_changed is not None and answers.new_truth is not None:
        scores["causal_follow"] = causal_follow(answers.target_changed, answers.new_truth, answers.truth)
    held = {f"causal_hold_{way}": causal_hold(answers.before, after) for way, after in answers.others_changed.items()}
    if held:
        scores |= held
        scores["causal_hold"] = torch.stack(list(held.values())).mean(0)  # (B,)
    if answers.other_query is not None:
        scores["swapped_query"] = swapped_query(answers.other_query, answers.truth)
    return scores


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
    apart = [total_variation(before, one) - total_variation(before, two) for one, two in zip(target, other)]  # (B,)
    return torch.stack([more(each, TIE) for each in apart]).mean(0)


def map_hold(before: Tensor, after: Tensor) -> Tensor:
    """Eq. (I4): 1 − TV of the maps (B,H,W) before and after something that was not asked for changed (B,)."""
    return 1 - total_variation(before, after)


def more(difference: Tensor, tie: float) -> Tensor:
    """1 where a difference (…) is above ``tie``, 0 where it is below −``tie``, ½ between; NaN stays NaN."""
    halves = (difference > tie).to(difference) + (difference >= -tie).to(difference)  # 0, 1 or 2
    return where_defined(halves / 2, ~difference.isnan())


CAUSE = 0.1
"""The largest effect of a picture must be at least this: else nothing in it is a cause."""
APART = 0.05
"""Effects that differ by less have no order; an object with a smaller effect has none."""


def answer_shift(before: Tensor, after: Tensor) -> Tensor:
    """TV(p, p′) (…): how far the answer moved, 0 … 1, of probabilities (…,A) that sum to 1.

    >>> answer_shift(torch.tensor([0.5, 0.5]), torch.tensor([0.75, 0.25])).item()
    0.25
    """
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
    present = _present(mass, effects)  # (B,N)
    known = torch.where(present, effects, -1.0)  # (B,N)
    most = torch.where(present, mass, -1.0)  # (B,N)
    has_most = present & (most >= most.amax(1, keepdim=True) - TIE)  # (B,N)
    is_cause = present & (known >= known.amax(1, keepdim=True) - TIE)  # (B,N)
    agree = (has_most & is_cause).sum(1) / has_most.sum(1).clamp(min=1)  # (B,)
    return where_defined(agree.to(effects), (known.amax(1) >= CAUSE) & ~_no_mass(mass, present))


def _present(mass: Tensor, effects: Tensor) -> Tensor:
    """Which objects (B,N) are there; masses and effects must be of the same ones."""
    if mass.shape != effects.shape or effects.dim() != 2:
        raise ShapeError("effects", f"(B,N) as the masses {tuple(mass.shape)}", effects.shape)
    return ~effects.isnan()


def cause_pairs(mass: Tensor, effects: Tensor) -> Tensor:
    """Eq. (E3): the share of pairs with |Δe| ≥ .05 that the masses (B,N) put in the same order (B,); a tie counts ½.

    NaN for a picture that has no such pair. Arguments are those of :func:`cause_top`.
    """
    present = _present(mass, effects)  # (B,N)
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
    present = _present(mass, effects)  # (B,N)
    idle = present & (effects < APART)  # (B,N)
    on_objects = torch.where(present, mass, 0.0).sum(1)  # (B,)
    share = torch.where(idle, mass, 0.0).sum(1) / on_objects
    return where_defined(share, (effects >= APART).any(1) & (on_objects > 0))


def off_objects(maps: Tensor, masks: Tensor) -> Tensor:
    """Eq. (E5): the share of the map (B,) that lies on no object of the masks (B,N,H,W) bool."""
    return (shares(maps) * ~masks.any(1)).sum(dim=(-2, -1))


def _no_mass(mass: Tensor, present: Tensor) -> Tensor:
    """Whether the masses (B,N) of the objects present are unknown: the map was all zeros."""
    return (mass.isnan() & present).any(1)


GROUPS = ("scene", "model")
BRIGHT = 0.05
"""A pixel of which no channel is brighter is background."""
ALIKE = 2.0
"""Areas are alike if neither is more than this many times the other."""


@dataclass(frozen=True)
class TwinMaps:
    """The map of each question about a scene and about its twins, (B,H,W) each; "other" is another object."""

    first: Tensor
    """Maps of the unchanged scene."""
    other_question: Tensor
    """Maps of the unchanged scene, asked for the other object."""
    target_moved: Tensor
    target_removed: Tensor
    other_moved: Tensor
    other_removed: Tensor
    other_recoloured: Tensor

    def map(self, change: Callable[[str, Tensor], Tensor]) -> TwinMaps:
        """The same with each of them replaced by ``change(name, maps)``."""
        return TwinMaps(**{each.name: change(each.name, getattr(self, each.name)) for each in fields(self)})


@dataclass(frozen=True)
class TwinTruth:
    """Where the objects of :class:`TwinMaps` are, (B,H,W) bool each."""

    target: Tensor
    other: Tensor
    target_new: Tensor
    """After its move."""
    other_new: Tensor
    has_moved: Tensor
    """(B,) bool: both found free ground; else scores of moves are undefined."""
    is_alike: Tensor
    """(B,) bool: the areas of both are alike; else scores that set one change beside the other are undefined."""

    def asked_for(self, name: str) -> Tensor:
        """The pixels (B,H,W) of what is asked for where :class:`TwinMaps` has ``name``; none once it is removed."""
        if name == "target_removed":
            return torch.zeros_like(self.target)
        return {"other_question": self.other, "target_moved": self.target_new}.get(name, self.target)


def foreground(images: Tensor) -> Tensor:
    """(B,H,W) bool: where pictures (B,C,H,W) in 0..1 have a channel brighter than 5 %."""
    return images.amax(1) > BRIGHT


def alike(one: Tensor, other: Tensor) -> Tensor:
    """(B,) bool: whether the areas of two masks (B,H,W) are alike."""
    areas = [mask.sum(dim=(-2, -1)) for mask in (one, other)]  # (B,) each
    return torch.maximum(*areas) <= ALIKE * torch.minimum(*areas)


def about_scene(maps: TwinMaps, truth: TwinTruth) -> dict[str, Tensor]:
    """The scores (B,) of the group ``scene``."""
    first, alike, moved = maps.first, truth.is_alike, truth.is_alike & truth.has_moved
    follow = map_follow(
        first,
        Moved(maps.target_moved, truth.target, truth.target_new),
        Moved(maps.other_moved, truth.other, truth.other_new),
    )
    specific = torch.stack([
        where_defined(map_specific(first, [maps.target_moved], [maps.other_moved]), moved),
        where_defined(map_specific(first, [maps.target_removed], [maps.other_removed]), alike),
    ])  # (2,B)  # fmt: skip
    held = {
        "map_hold_moved": where_defined(map_hold(first, maps.other_moved), truth.has_moved),
        "map_hold_recoloured": map_hold(first, maps.other_recoloured),
        "map_hold_removed": map_hold(first, maps.other_removed),
    }
    return {
        "map_follow": where_defined(follow, moved),
        "map_turn": map_turn(first, maps.other_question, truth.target, truth.other),
        "map_specific": specific.nanmean(0),
        "map_hold": torch.stack(list(held.values())).nanmean(0),
        **held,
    }


def about_model(maps: Tensor, objects: Tensor, effects: Tensor) -> dict[str, Tensor]:
    """The scores (B,) of the group ``model``: of maps (B,H,W), objects (B,N,H,W) bool and their effects (B,N)."""
    mass = mass_on(maps, objects)  # (B,N)
    return {
        "cause_top": cause_top(mass, effects),
        "cause_pairs": cause_pairs(mass, effects),
        "misplaced": misplaced(maps, objects, effects),
        "off_objects": off_objects(maps, objects),
    }


class TwinScores:
    """Scores of maps and of their rivals, added batch by batch."""

    def __init__(self) -> None:
        self.own: dict[str, Values] = {group: Values() for group in GROUPS}
        """Scores of the maps, by group."""
        self.rivals: dict[str, dict[str, Values]] = {group: {} for group in GROUPS}
        """By group and by the name of the rival."""
        self.edits = EditScores()
        """Scores of answers to edited attention, if the model takes any; from fewer questions."""
        self._kept = ColumnBuffer()

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def groups(self) -> Tensor:
        """The picture of each question that was scored (B,)."""
        return self._kept["group"] if "group" in self._kept else torch.zeros(0, dtype=torch.int64)

    def add(
        self,
        maps: TwinMaps,
        truth: TwinTruth,
        objects: Tensor,
        effects: Tensor,
        groups: Tensor,
        *,
        bright: TwinMaps | None = None,
        grids: Grids | None = None,
    ) -> None:
        """Score a batch.

        Args:
            maps: of the questions about scenes and their twins.
            truth: where things are in them.
            objects: (B,N,H,W) bool: all objects of the unchanged scenes.
            effects: (B,N) of each on the answer, see :func:`saccade.metrics.maps.interventions.object_effects`.
            groups: (B,) id of each question's picture.
            bright: :func:`foreground` of the pictures of all ``maps``.
            grids: those of the maps; None: pixels, and there is no oracle.
        """
        self._kept.append(group=groups)
        self.own["scene"].add_values(about_scene(maps, truth))
        self.own["model"].add_values(about_model(maps.first, objects, effects))
        for name, others in rivals(maps, truth, groups, bright=bright, grids=grids).items():
            self.rivals["scene"].setdefault(name, Values()).add_values(about_scene(others, truth))
            rival = others.first
            if name == "grid_oracle" and grids is not None:  # the best map of the grids is another one there
                best = grids.to(rival.device).oracle(_cause(objects, effects))  # (B,H,W)
                rival = rival if best is None else best
            self.rivals["model"].setdefault(name, Values()).add_values(about_model(rival, objects, effects))
        area = objects.sum(dim=(-2, -1)).to(effects)  # (B,N)
        ranks = {"cause_top": cause_top(area, effects), "cause_pairs": cause_pairs(area, effects)}
        self.rivals["model"].setdefault("object_area", Values()).add_values(ranks)

    def join(self, later: TwinScores) -> None:
        """Add what was scored of later questions."""
        self._kept.join(later._kept)
        self.edits.join(later.edits)
        for group in GROUPS:
            self.own[group].join(later.own[group])
            for name, held in later.rivals[group].items():
                self.rivals[group].setdefault(name, Values()).join(held)

    def summary(self) -> Part:
        """Plain numbers: ``n``; of each group its scores, ``baselines``, ``intervals`` and ``counts``."""
        found: Part = {"n": len(self), "scene": self._group("scene"), "model": self._group("model")}
        if len(self.edits):
            self.edits.add_to(found["model"])
        return found

    def _group(self, group: str) -> Part:
        own, intervals = self.own[group], self.own[group].intervals(self.groups)
        return {
            "scores": own.means(),
            "baselines": {name: held.means() for name, held in self.rivals[group].items()},
            "intervals": {name: [each.low, each.high] for name, each in intervals.items()},
            "counts": {name: each.n for name, each in intervals.items()},
        }


def _cause(objects: Tensor, effects: Tensor) -> Tensor:
    """The pixels (B,H,W) of the object with the largest effect."""
    largest = torch.where(effects.isnan(), -1.0, effects).argmax(1)  # (B,)
    return objects[torch.arange(len(objects), device=objects.device), largest]


def rivals(
    maps: TwinMaps, truth: TwinTruth, groups: Tensor, *, bright: TwinMaps | None = None, grids: Grids | None = None
) -> dict[str, TwinMaps]:
    """The maps of each rival, by its name; what is given is what :meth:`TwinScores.add` takes."""
    size = (maps.first.shape[-2], maps.first.shape[-1])
    own = (Grids.pixels(size) if grids is None else grids).to(maps.first.device)

    def blind(lay: Callable[..., Tensor]) -> TwinMaps:
        pictures = 1 if own.is_shared else len(maps.first)
        laid = own.through(lambda frame, cells: lay(frame, cells, size, pictures=pictures))  # (1|B,H,W)
        return maps.map(lambda name, each: laid.expand_as(each))

    found: dict[str, TwinMaps] = {}
    if bright is not None:
        found["foreground"] = maps.map(lambda name, each: each * getattr(bright, name))
    if can_exchange(groups):
        other = baselines.derangement(groups).to(maps.first.device)  # (B,)
        found["shuffled"] = maps.map(lambda name, each: each[other])
    found["uniform"] = blind(baselines.uniform)
    found["centre_gaussian"] = blind(baselines.centre_gaussian)
    found["target_mask"] = maps.map(lambda name, each: even_where_empty(truth.asked_for(name).float()))
    if grids is not None and own.is_shared:
        best = own.oracle(torch.cat((truth.target, truth.other, truth.target_new)))  # (3B,H,W)
        if best is not None:
            target, asked, new = torch.split(best, len(truth.target))
            named = {"other_question": asked, "target_moved": new, "target_removed": torch.zeros_like(target)}
            found["grid_oracle"] = maps.map(lambda name, _: even_where_empty(named.get(name, target)))
    return found


def even_where_empty(maps: Tensor) -> Tensor:
    """Maps (B,H,W) with ones in the place of a map of zeros."""
    return torch.where((maps.sum(dim=(-2, -1), keepdim=True) > 0), maps, 1.0)
