"""A causal set as truth: masks of what the questions about its scenes ask for, and scores *about the scene*.

A map is called ``PICTURE__QUERY``, see :mod:`saccade.data.causal.scenes`. Maps of the scenes themselves are scored as
maps of masks are. Those of the twins are gathered scene by scene for the scores of
:mod:`saccade.metrics.maps.interventions`: ``map_follow``, ``map_turn``, ``map_specific`` and ``map_hold``, and beside
them ``map_hold_background``: behind digits on black it is a background of another kind.

================================  ======================================================================================
a map that a score needs is ...   then the score of its scene is
================================  ======================================================================================
missing, or left out              undefined and counted; with ``--missing zero`` it is 0
all zeros                         0. But once the target is removed there is nothing to look at, so zeros are then read
                                  as an even map
================================  ======================================================================================

Only some scenes are in memory: the maps of a stream must come scene by scene.

Axes: B scenes, h and w cells of a map, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.data.causal.row_folder import SCENE, CausalPicture, picture_name
from saccade.data.causal.scenes import READ, TWINS, CausalScene, read_drawn_set
from saccade.errors import DataError
from saccade.geometry import Size
from saccade.metrics.intervals import ByName, ColumnBuffer, Values
from saccade.metrics.maps.interventions import map_hold
from saccade.metrics.maps.localisation import where_defined
from saccade.metrics.maps.twins import (
    TwinMaps,
    TwinTruth,
    about_scene,
    alike,
    even_where_empty,
    foreground,
    rivals,
)
from saccade.scoring.results import Policies, SceneScores
from saccade.scoring.score import laid_over, reduced
from saccade.scoring.sources import TruthMask, Truths

FIRST, SECOND = "first", "other_question"
"""Which map it is: of the scene, for its first or for its second question. Maps of twins are called as the twin is."""
ROLES = (FIRST, SECOND, *READ)
BACKGROUND = "background_changed"
_OPEN = 128  # scenes whose maps are waited for at once
_SCENES_AT_ONCE = 32  # scenes that are scored together
NEEDS = {
    "map_follow": (FIRST, "target_moved", "other_moved"),
    "map_turn": (FIRST, SECOND),
    "map_specific": (FIRST, "target_moved", "target_removed", "other_moved", "other_removed"),
    "map_hold": (FIRST, "other_moved", "other_recoloured", "other_removed"),
    "map_hold_moved": (FIRST, "other_moved"),
    "map_hold_recoloured": (FIRST, "other_recoloured"),
    "map_hold_removed": (FIRST, "other_removed"),
    "map_hold_background": (FIRST, BACKGROUND),
}
"""The maps that each score is made of."""
_OF_LIKE_AREA = ("map_follow", "map_specific")


class Place(NamedTuple):
    """What a map is about."""

    scene: int  # index of the scene
    role: str  # FIRST, SECOND or the name of a twin


class CausalTruth(Truths):
    """The masks of a causal set, by the names of the maps to hand in."""

    is_fixed = True

    def __init__(self, folder: Path) -> None:
        causal = read_drawn_set(folder)
        self.where, self.facts = str(folder), causal.facts
        self.scenes = list(causal)
        for scene in self.scenes:
            for picture in (scene, *scene.twins.values()):
                picture.row = {}  # which no score reads; all scenes of a set are in memory
        self.name(True, "__")
        self.paths = list(self.names)

    def name(self, short: bool, separator: str) -> None:
        """Call maps by picture and question."""
        self.places: dict[str, Place] = {}
        for number, scene in enumerate(self.scenes):
            twins = [(twin, scene.question, twin) for twin in TWINS]
            for picture, query, role in [(SCENE, scene.question, FIRST), (SCENE, scene.other_question, SECOND), *twins]:
                self.places[f"{picture_name(scene.id, picture)}{separator}{query}"] = Place(number, role)
        self.names = {name: place for name, place in self.places.items() if place.role in (FIRST, SECOND)}

    @property
    def wanted(self) -> Iterable[str]:
        """All maps that a score reads, scene by scene."""
        return [name for name, place in self.places.items() if place.role in ROLES]

    def evidence(self, name: str, size: Size) -> TruthMask:
        """The pixels of what is asked for, and of all objects."""
        place = self.names[name]
        scene = self.scenes[place.scene]
        labels = torch.from_numpy(scene.label_map.copy())  # (H,W)
        asked = scene.target if place.role == FIRST else scene.other
        return TruthMask(labels == asked + 1, labels > 0)

    def pool(self, policies: Policies) -> TwinPool:
        """Takes all maps scene by scene."""
        return TwinPool(self, policies)


_Key = tuple[Size, Size, torch.dtype, torch.device]
"""What scenes that are scored together have in common: size of the maps, and of the pixels that they lie on."""


class TwinPool:
    """Takes maps one by one, and scores a scene when all of its maps are there."""

    def __init__(self, truth: CausalTruth, policies: Policies) -> None:
        self._truth, self._policies = truth, policies
        self._own, self._rivals, self._groups = Values(), ByName(), ColumnBuffer()
        self._open: dict[int, dict[str, Tensor]] = {}
        self._closed: set[int] = set()
        self._ready: dict[_Key, list[tuple[int, dict[str, Tensor]]]] = {}  # a scene, and its maps (H,W) by role
        self.twins = truth.places.keys() - truth.names.keys()  # the names of their maps
        self.shown: Size = (truth.facts.size, truth.facts.size)  # of every picture
        self.unread = 0  # maps of twins that no score reads

    def missing(self, came: set[str]) -> list[str]:
        """Maps of twins that are not among those that came."""
        return [name for name in self._truth.wanted if name not in came and name not in self._truth.names]

    def add(self, name: str, map: Tensor) -> None:
        """Take one map (h,w); of a scene that was scored already it is a DataError."""
        place = self._truth.places[name]
        if place.role not in ROLES:
            self.unread += 1
            return
        if place.scene in self._closed:
            raise DataError(
                f"scene {self._truth.scenes[place.scene].id}: its maps come more than {_OPEN} scenes apart in a "
                "stream; give all maps of a scene one after the other, or a folder of them"
            )
        maps = self._open.setdefault(place.scene, {})
        maps[place.role] = map.clone()
        if len(maps) == len(ROLES):
            self._close(place.scene)
        elif len(self._open) > _OPEN:
            self._close(next(iter(self._open)))

    def finish(self) -> SceneScores:
        """Score what is left; the scores of all scenes."""
        for scene in list(self._open):
            self._close(scene)
        for key in list(self._ready):
            self._score(key)
        groups = self._groups["group"] if "group" in self._groups else torch.zeros(0, dtype=torch.int64)  # (N,)
        order = groups.argsort()
        return SceneScores(
            scores=self._own.intervals(groups),
            baselines=self._rivals.means(),
            names=tuple(self._truth.scenes[number].id for number in groups[order].tolist()),
            values={name: values[order] for name, values in self._own.values().items()},
            facts=asdict(self._truth.facts),
        )

    def _close(self, scene: int) -> None:
        """Lay the maps of a scene over its picture, and score them together with those of others."""
        self._closed.add(scene)
        maps = self._open.pop(scene)
        like = maps.get(FIRST, next(iter(maps.values())))
        size: Size = (like.shape[0], like.shape[1])
        shown = size if self._policies.resize == "map" else self.shown
        key = (size, shown, like.dtype, like.device)
        ready = self._ready.setdefault(key, [])
        ready.append((scene, {role: laid_over(map[None].to(like), shown)[0][0] for role, map in maps.items()}))
        if len(ready) >= _SCENES_AT_ONCE:
            self._score(key)

    def _score(self, key: _Key) -> None:
        numbers, laid = zip(*self._ready.pop(key))
        size, shown, dtype, device = key
        _, grids = laid_over(torch.zeros(1, *size), shown)
        empty = torch.zeros(shown, dtype=dtype, device=device)
        maps = {role: torch.stack([own.get(role, empty) for own in laid]) for role in ROLES}  # (B,H,W) each
        is_there = {role: torch.tensor([role in own for own in laid], device=device) for role in ROLES}  # (B,) each
        even = even_where_empty(maps["target_removed"])
        maps["target_removed"] = torch.where(is_there["target_removed"][:, None, None], even, empty)
        truth, bright = _places([self._truth.scenes[number] for number in numbers], shown, device)
        of_twins = _twin_maps(maps.__getitem__)
        values = about_scene(of_twins, truth) | {"map_hold_background": map_hold(maps[FIRST], maps[BACKGROUND])}
        is_full = {role: own.flatten(1).any(1) for role, own in maps.items()}  # (B,) each
        for name, roles in NEEDS.items():
            full = torch.stack([is_full[role] for role in roles]).all(0)  # (B,)
            score = torch.where(full, values[name], torch.zeros_like(values[name]))
            defined = torch.stack([is_there[role] for role in roles]).all(0) | (self._policies.missing == "zero")
            values[name] = where_defined(score, defined & truth.is_alike if name in _OF_LIKE_AREA else defined)
        groups = torch.tensor(numbers)  # (B,)
        self._groups.append(group=groups)
        self._own.add_values(values)
        for name, others in rivals(of_twins, truth, groups, bright=bright, grids=grids).items():
            scores = about_scene(others, truth).items()
            beside = {score: where_defined(own, ~values[score].isnan()) for score, own in scores}
            self._rivals.add_values(name, beside)


def _twin_maps(of: Callable[[str], Tensor]) -> TwinMaps:
    return TwinMaps(**{field.name: of(field.name) for field in fields(TwinMaps)})


def _places(scenes: list[CausalScene], size: Size, device: torch.device) -> tuple[TwinTruth, TwinMaps]:
    """Where things are in the scenes and their twins, and which pixels are bright; at ``size``."""

    def fitting(masks: Tensor) -> Tensor:
        masks = masks.to(device)  # (B,h,w)
        return masks if masks.shape[-2:] == size else reduced(masks, size)

    def pictures(name: str) -> list[CausalPicture]:
        return [scene if name in (FIRST, SECOND) else scene.twins[name] for scene in scenes]

    def pixels(thing: str, name: str = FIRST) -> Tensor:
        pairs = zip(scenes, pictures(name))
        masks = [torch.from_numpy(picture.label_map == getattr(scene, thing) + 1) for scene, picture in pairs]
        return fitting(torch.stack(masks))

    def bright(name: str) -> Tensor:
        images = torch.from_numpy(np.stack([picture.image for picture in pictures(name)]))  # (B,H,W,3)
        return fitting(foreground(images.permute(0, 3, 1, 2) / 255))

    target, other = pixels("target"), pixels("other")
    truth = TwinTruth(
        target=target,
        other=other,
        target_new=pixels("target", "target_moved"),
        other_new=pixels("other", "other_moved"),
        has_moved=torch.ones(len(scenes), dtype=torch.bool, device=device),
        is_alike=alike(target, other),
    )
    return truth, _twin_maps(bright)
