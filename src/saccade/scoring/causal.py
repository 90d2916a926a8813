"""A causal set as truth: masks of what the questions about its scenes ask for, and scores *about the scene*.

A map is called ``PICTURE__QUERY``, see :mod:`saccade.data.causal`. Maps of the scenes themselves are scored as maps of
masks are. Those of the twins are gathered scene by scene for the scores of
:mod:`saccade.metrics.maps.interventions`: ``map_follow``, ``map_turn``, ``map_specific`` and ``map_hold``.
``map_hold_background`` is told beside them: behind digits on black it is a background of another kind.

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

from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.data.causal.reading import CausalPicture, CausalScene, read_causal_set
from saccade.data.causal.truth import SCENE, TWINS, picture_name
from saccade.errors import DataError
from saccade.geometry import Size
from saccade.metrics.intervals import ColumnBuffer, Values
from saccade.metrics.maps.baselines import Grids
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
from saccade.scoring.truths import Evidence, Truths

FIRST, SECOND = "first", "other_question"
"""Which map it is: of the scene, for its first or for its second question. Maps of twins are called as the twin is."""
READ = tuple(name for name in TWINS if name != "target_recoloured")
"""The twins whose maps are read. The target in another colour has the same place; no score asks for it."""
ROLES = (FIRST, SECOND, *READ)
BACKGROUND = "background_changed"
_OPEN = 128
"""Scenes whose maps are waited for at once."""
_AT_ONCE = 32
"""Scenes that are scored together."""
_OTHERS = ("other_moved", "other_recoloured", "other_removed")
NEEDS = {
    "map_follow": (FIRST, "target_moved", "other_moved"),
    "map_turn": (FIRST, SECOND),
    "map_specific": (FIRST, "target_moved", "target_removed", "other_moved", "other_removed"),
    "map_hold": (FIRST, *_OTHERS),
    "map_hold_moved": (FIRST, "other_moved"),
    "map_hold_recoloured": (FIRST, "other_recoloured"),
    "map_hold_removed": (FIRST, "other_removed"),
    "map_hold_background": (FIRST, BACKGROUND),
}
"""The maps that each score is made of."""
_OF_LIKE_AREA = ("map_follow", "map_specific")


class Place(NamedTuple):
    """What a map is about."""

    scene: int
    """Index of the scene."""
    role: str
    """FIRST, SECOND or the name of a twin."""


class CausalTruth(Truths):
    """The masks of a causal set, by the names of the maps to hand in."""

    is_fixed = True

    def __init__(self, folder: Path) -> None:
        found = read_causal_set(folder)
        self.where, self.facts = str(folder), found.facts
        self.scenes = [_without_objects(scene) for scene in found]
        self.places: dict[str, Place] = {}
        """All maps that can be handed in, scene by scene."""
        self.name(True, "__")

    def name(self, short: bool, separator: str) -> None:
        """See :class:`saccade.scoring.truths.Truths`."""
        self.places = {}
        for number, scene in enumerate(self.scenes):
            twins = [(twin, scene.question, twin) for twin in TWINS]
            for picture, query, role in [(SCENE, scene.question, FIRST), (SCENE, scene.other_question, SECOND), *twins]:
                self.places[f"{picture_name(scene.id, picture)}{separator}{query}"] = Place(number, role)
        self.names = {name: place for name, place in self.places.items() if place.role in (FIRST, SECOND)}

    @property
    def wanted(self) -> Iterable[str]:
        """See :class:`saccade.scoring.truths.Truths`."""
        return [name for name, place in self.places.items() if place.role in ROLES]

    def evidence(self, name: str, size: Size) -> Evidence:
        """See :class:`saccade.scoring.truths.Truths`."""
        place = self.names[name]
        scene = self.scenes[place.scene]
        labels = torch.from_numpy(scene.label_map.copy())  # (H,W)
        asked = scene.target if place.role == FIRST else scene.other
        return Evidence(labels == asked + 1, labels > 0)

    def pool(self, policies: Policies) -> TwinPool:
        """See :class:`saccade.scoring.truths.Truths`."""
        return TwinPool(self, policies)


def _without_objects(scene: CausalScene) -> CausalScene:
    """The scene without what no score reads, as all scenes of a set are in memory."""
    files = {name: {"image": twin.row["image"], "mask": twin.row["mask"]} for name, twin in scene.twins.items()}
    row = {name: scene.row[name] for name in ("id", "image", "mask", "target", "other", "questions")}
    return replace(scene, row={**row, "twins": files})


class _Ready(NamedTuple):
    """A scene whose maps lie on one size of pixels."""

    scene: int
    maps: dict[str, Tensor]
    """(H,W) by role."""


class TwinPool:
    """Takes maps one by one, and scores a scene when all of its maps are there."""

    def __init__(self, truth: CausalTruth, policies: Policies) -> None:
        self._truth, self._policies = truth, policies
        self._own, self._rivals, self._kept = Values(), dict[str, Values](), ColumnBuffer()
        self._open: dict[int, dict[str, Tensor]] = {}
        self._closed: set[int] = set()
        self._ready: dict[tuple[object, ...], list[_Ready]] = {}
        self._grids: dict[tuple[object, ...], Grids | None] = {}
        self.unread = 0
        """Maps of twins that no score reads."""

    @property
    def shown(self) -> Size:
        """(H, W) of every picture."""
        return self._truth.facts.size, self._truth.facts.size

    def is_twin(self, name: str) -> bool:
        """Whether a map of that name is about a twin."""
        return name in self._truth.places and name not in self._truth.names

    def missing(self, came: set[str]) -> list[str]:
        """Maps of twins that are not among those that came."""
        return [name for name in self._truth.wanted if name not in came and name not in self._truth.names]

    def add(self, name: str, found: Tensor) -> None:
        """Take one map (h,w).

        Raises:
            DataError: the scene was scored already, as its maps come too far apart.
        """
        place = self._truth.places[name]
        if place.role not in ROLES:
            self.unread += 1
            return
        if place.scene in self._closed:
            raise DataError(
                f"scene {self._truth.scenes[place.scene].id}: its maps come more than {_OPEN} scenes apart in a "
                "stream; give all maps of a scene one after the other, or a folder of them"
            )
        held = self._open.setdefault(place.scene, {})
        held[place.role] = found.clone()
        if len(held) == len(ROLES):
            self._close(place.scene)
        elif len(self._open) > _OPEN:
            self._close(next(iter(self._open)))

    def finish(self) -> SceneScores:
        """Score what is left; the scores of all scenes."""
        for scene in list(self._open):
            self._close(scene)
        for key in list(self._ready):
            self._score(key)
        groups = self._kept["group"] if "group" in self._kept else torch.zeros(0, dtype=torch.int64)  # (N,)
        order = groups.argsort()
        return SceneScores(
            scores=self._own.intervals(groups),
            baselines={name: held.means() for name, held in self._rivals.items()},
            names=tuple(self._truth.scenes[number].id for number in groups[order].tolist()),
            values={name: values[order] for name, values in self._own.values().items()},
            facts=asdict(self._truth.facts),
        )

    def _close(self, scene: int) -> None:
        """Lay the maps of a scene over its picture, and score them together with those of others."""
        self._closed.add(scene)
        held = self._open.pop(scene)
        given = held.get(FIRST, next(iter(held.values())))
        own: Size = (given.shape[0], given.shape[1])
        shown = own if self._policies.resize == "map" else self.shown
        key = (own, shown, given.dtype, given.device)
        _, self._grids[key] = laid_over(given[None], shown)
        maps = {role: laid_over(each[None].to(given), shown)[0][0] for role, each in held.items()}
        ready = self._ready.setdefault(key, [])
        ready.append(_Ready(scene, maps))
        if len(ready) >= _AT_ONCE:
            self._score(key)

    def _score(self, key: tuple[object, ...]) -> None:
        ready, grids = self._ready.pop(key), self._grids[key]
        empty = torch.zeros_like(next(iter(ready[0].maps.values())))
        maps = {role: torch.stack([each.maps.get(role, empty) for each in ready]) for role in ROLES}  # (B,H,W) each
        given = {role: torch.tensor([role in each.maps for each in ready], device=empty.device) for role in ROLES}
        maps["target_removed"] = torch.where(
            given["target_removed"][:, None, None], even_where_empty(maps["target_removed"]), empty
        )
        truth, bright = self._seen(ready, empty)
        of_twins = TwinMaps(**{each.name: maps[each.name] for each in fields(TwinMaps)})
        values = about_scene(of_twins, truth) | {"map_hold_background": map_hold(maps[FIRST], maps[BACKGROUND])}
        full = {role: each.flatten(1).any(1) for role, each in maps.items()}  # (B,) each
        for name, roles in NEEDS.items():
            is_full = torch.stack([full[role] for role in roles]).all(0)  # (B,)
            is_given = torch.stack([given[role] for role in roles]).all(0)  # (B,)
            found = torch.where(is_full, values[name], torch.zeros_like(values[name]))
            defined = is_given | (self._policies.missing == "zero")
            values[name] = where_defined(found, defined & truth.is_alike if name in _OF_LIKE_AREA else defined)
        groups = torch.tensor([each.scene for each in ready])  # (B,)
        self._kept.append(group=groups)
        self._own.add_values(values)
        for name, others in rivals(of_twins, truth, groups, bright=bright, grids=grids).items():
            beside = {
                score: where_defined(each, ~values[score].isnan()) for score, each in about_scene(others, truth).items()
            }
            self._rivals.setdefault(name, Values()).add_values(beside)

    def _seen(self, ready: list[_Ready], like: Tensor) -> tuple[TwinTruth, TwinMaps]:
        """Where things are in the scenes and their twins, and which pixels are bright; as pixels of ``like`` (H,W)."""
        scenes = [self._truth.scenes[each.scene] for each in ready]

        def fitting(masks: list[Tensor]) -> Tensor:
            found, size = torch.stack(masks).to(like.device), (like.shape[0], like.shape[1])  # (B,h,w)
            return found if found.shape[-2:] == size else reduced(found, size)

        def pictures(name: str) -> list[CausalPicture]:
            return [scene if name == SCENE else scene.twins[name] for scene in scenes]

        def of(obj: str, name: str) -> Tensor:
            pairs = zip(scenes, pictures(name))
            return fitting([torch.from_numpy(seen.label_map == getattr(scene, obj) + 1) for scene, seen in pairs])

        def bright(name: str) -> Tensor:
            images = torch.stack([torch.from_numpy(seen.image.copy()).permute(2, 0, 1) for seen in pictures(name)])
            return fitting(list(foreground(images / 255)))  # of (B,3,H,W)

        target, other = of("target", SCENE), of("other", SCENE)
        truth = TwinTruth(
            target=target,
            other=other,
            target_new=of("target", "target_moved"),
            other_new=of("other", "other_moved"),
            has_moved=torch.ones(len(ready), dtype=torch.bool, device=like.device),
            is_alike=alike(target, other),
        )
        scene = bright(SCENE)
        names = (each.name for each in fields(TwinMaps))
        return truth, TwinMaps(**{name: scene if name in (FIRST, SECOND) else bright(name) for name in names})
