"""Maps of scenes and of their twins, scored beside rivals, in two groups that are kept apart.

A twin is a scene that is rendered again with one thing changed. The scores are those of
:mod:`saccade.metrics.maps.interventions` and :mod:`saccade.metrics.maps.edits`:

==========  =============================================================================  =============================
group       scores                                                                         asks
==========  =============================================================================  =============================
``scene``   ``map_follow``, ``map_turn``, ``map_specific``, ``map_hold``                   does the map lie on what was
                                                                                           asked for?
``model``   ``cause_top``, ``cause_pairs``, ``misplaced``, ``off_objects``,                does the map say what the
            ``edit_necessity``, ``edit_sufficiency``                                       answer rests on?
==========  =============================================================================  =============================

Rivals have the same scores of other maps:

===================  =============================================================================================
``foreground``       the model's map, times "this pixel is brighter than 5 %" (:func:`foreground`)
``shuffled``         the model's maps of another picture and of its twins
``uniform``          an even map on the model's grids
``centre_gaussian``  a blob in the middle
``target_mask``      the pixels of what is asked for: a segmenter that knows the question and nothing of the model
``grid_oracle``      the map of the model's grids with the largest share on one object: for ``scene`` what is asked for,
                     for ``model`` the one with the largest effect. It bounds that share, and none of the scores here
``object_area``      for ``cause_top`` and ``cause_pairs`` alone: the areas of the objects in place of their masses
``random_cells``     for edits alone: as many cells elsewhere, drawn at random
``heaviest_cells``   for edits alone: as many cells elsewhere, the heaviest
===================  =============================================================================================

Where nothing is left to look at (what is asked for was removed) an oracle and a mask are even maps.

No model is needed here. Axes: B questions, N objects, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from saccade.metrics.intervals import ByName, Grouped, Values
from saccade.metrics.maps import interventions
from saccade.metrics.maps.baselines import BLIND_MAPS, Grids, can_exchange, derangement
from saccade.metrics.maps.edits import EditScores
from saccade.metrics.maps.interventions import Moved, cause_pairs, cause_top, map_hold, map_specific
from saccade.metrics.maps.localisation import mass_on, where_defined
from saccade.metrics.result import Part

GROUPS = ("scene", "model")
BRIGHT = 0.05  # Pixels without a brighter channel are background
ALIKE = 2.0  # Areas are alike up to this factor


@dataclass(frozen=True)
class TwinMaps:
    """The map of each question about a scene and its twins, (B,H,W) each; "other" is another object."""

    first: Tensor  # Maps of the unchanged scene
    other_question: Tensor  # Maps of the unchanged scene, asked for the other object
    target_moved: Tensor
    target_removed: Tensor
    other_moved: Tensor
    other_removed: Tensor
    other_recoloured: Tensor

    def map(self, change: Callable[[str, Tensor], Tensor]) -> TwinMaps:
        """The same with each map replaced by ``change(name, maps)``."""
        return TwinMaps(**{field.name: change(field.name, getattr(self, field.name)) for field in fields(self)})


@dataclass(frozen=True)
class TwinTruth:
    """Where the objects of :class:`TwinMaps` are, (B,H,W) bool each."""

    target: Tensor
    other: Tensor
    target_new: Tensor  # After its move
    other_new: Tensor
    has_moved: Tensor  # (B,) bool: both objects could be moved; else scores of moves are undefined
    is_alike: Tensor  # (B,) bool: both have like areas; else scores that compare their changes are undefined

    def asked_object(self, name: str) -> Tensor:
        """The pixels (B,H,W) asked for in the maps ``name`` of :class:`TwinMaps`; none once the target is removed."""
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
    follow = interventions.map_follow(
        first,
        Moved(maps.target_moved, truth.target, truth.target_new),
        Moved(maps.other_moved, truth.other, truth.other_new),
    )
    specific = torch.stack([
        where_defined(map_specific(first, maps.target_moved, maps.other_moved), moved),
        where_defined(map_specific(first, maps.target_removed, maps.other_removed), alike),
    ])  # (2,B)  # fmt: skip
    holds = {
        "map_hold_moved": where_defined(map_hold(first, maps.other_moved), truth.has_moved),
        "map_hold_recoloured": map_hold(first, maps.other_recoloured),
        "map_hold_removed": map_hold(first, maps.other_removed),
    }
    return {
        "map_follow": where_defined(follow, moved),
        "map_turn": interventions.map_turn(first, maps.other_question, truth.target, truth.other),
        "map_specific": specific.nanmean(0),
        "map_hold": torch.stack(list(holds.values())).nanmean(0),
        **holds,
    }


def about_model(maps: Tensor, objects: Tensor, effects: Tensor) -> dict[str, Tensor]:
    """The scores (B,) of the group ``model``: of maps (B,H,W), objects (B,N,H,W) bool and their effects (B,N)."""
    mass = mass_on(maps, objects)  # (B,N)
    return {
        "cause_top": cause_top(mass, effects),
        "cause_pairs": cause_pairs(mass, effects),
        "misplaced": interventions.misplaced(maps, objects, effects),
        "off_objects": interventions.off_objects(maps, objects),
    }


class TwinScores(Grouped):
    """Scores of maps and their rivals, added batch by batch."""

    def __init__(self) -> None:
        super().__init__()
        self.scores: dict[str, Values] = {group: Values() for group in GROUPS}  # Scores of the maps, by group
        self.rivals = {group: ByName() for group in GROUPS}  # By group and name of the rival
        self.edits = EditScores()
        """Scores of answers to edited attention, if the model takes any, of fewer questions."""

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
        """Score the maps of a batch of questions, with the ``truth`` of the scenes and their twins.

        ``objects`` (B,N,H,W) bool are those of the unchanged scenes, ``effects`` (B,N) theirs on the answer
        (:func:`interventions.object_effects`), ``groups`` (B,) ids of pictures, ``bright`` is :func:`foreground` of the
        pictures of all maps. ``grids`` None: maps on pixels, without an oracle.
        """
        self._columns.append(group=groups)
        self.scores["scene"].add_values(about_scene(maps, truth))
        self.scores["model"].add_values(about_model(maps.first, objects, effects))
        for name, others in rivals(maps, truth, groups, bright=bright, grids=grids).items():
            self.rivals["scene"].add_values(name, about_scene(others, truth))
            rival = others.first
            if name == "grid_oracle" and grids is not None:  # the best map of the grids is another one there
                largest = torch.where(effects.isnan(), -1.0, effects).argmax(1)  # (B,)
                cause = objects[torch.arange(len(objects), device=objects.device), largest]  # (B,H,W)
                best = grids.to(rival.device).oracle(cause)  # (B,H,W)
                rival = rival if best is None else best
            self.rivals["model"].add_values(name, about_model(rival, objects, effects))
        area = objects.sum(dim=(-2, -1)).to(effects)  # (B,N)
        ranks = {"cause_top": cause_top(area, effects), "cause_pairs": cause_pairs(area, effects)}
        self.rivals["model"].add_values("object_area", ranks)

    def join(self, later: TwinScores) -> None:
        """Append later questions."""
        self._columns.join(later._columns)
        self.edits.join(later.edits)
        for group in GROUPS:
            self.scores[group].join(later.scores[group])
            self.rivals[group].join(later.rivals[group])

    def summary(self) -> Part:
        """Plain numbers: ``n``; of each group its scores, ``baselines``, ``intervals`` and ``counts``."""
        summary: Part = {"n": len(self)}
        for group, values in self.scores.items():
            intervals = values.intervals(self.groups)
            summary[group] = {
                "scores": values.means(),
                "baselines": self.rivals[group].means(),
                "intervals": {name: [interval.low, interval.high] for name, interval in intervals.items()},
                "counts": {name: interval.n for name, interval in intervals.items()},
            }
        if len(self.edits):
            self.edits.add_to(summary["model"])
        return summary


def rivals(
    maps: TwinMaps, truth: TwinTruth, groups: Tensor, *, bright: TwinMaps | None = None, grids: Grids | None = None
) -> dict[str, TwinMaps]:
    """The maps of each rival by name; arguments as of :meth:`TwinScores.add`."""
    size = (maps.first.shape[-2], maps.first.shape[-1])
    model_grids = (Grids.pixels(size) if grids is None else grids).to(maps.first.device)
    rival_maps: dict[str, TwinMaps] = {}
    if bright is not None:
        rival_maps["foreground"] = maps.map(lambda name, tensor: tensor * getattr(bright, name))
    if can_exchange(groups):
        other = derangement(groups).to(maps.first.device)  # (B,)
        rival_maps["shuffled"] = maps.map(lambda name, tensor: tensor[other])
    for blind, lay in BLIND_MAPS.items():
        laid = model_grids.blind(lay, size, len(maps.first)).expand_as(maps.first)  # (B,H,W)
        rival_maps[blind] = TwinMaps(**dict.fromkeys([field.name for field in fields(maps)], laid))
    rival_maps["target_mask"] = maps.map(lambda name, tensor: even_where_empty(truth.asked_object(name).float()))
    if grids is not None and model_grids.is_shared:
        best = model_grids.oracle(torch.cat((truth.target, truth.other, truth.target_new)))  # (3B,H,W)
        if best is not None:
            target, other_best, new = torch.split(best, len(truth.target))
            named = {"other_question": other_best, "target_moved": new, "target_removed": torch.zeros_like(target)}
            rival_maps["grid_oracle"] = maps.map(lambda name, _: even_where_empty(named.get(name, target)))
    return rival_maps


def even_where_empty(maps: Tensor) -> Tensor:
    """Maps (B,H,W), with ones in place of an all-zero map."""
    return torch.where((maps.sum(dim=(-2, -1), keepdim=True) > 0), maps, 1.0)
