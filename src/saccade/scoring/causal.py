"""A causal set as truth: masks of what the questions about its scenes ask for, and where things are in the twins.

A map is called ``PICTURE__QUERY``, see :mod:`saccade.data.causal`. Maps of the scenes themselves are scored as maps of
masks are. Those of the twins are read by :mod:`saccade.scoring.twins`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from saccade.data.causal.reading import CausalPicture, read_causal_set
from saccade.data.causal.truth import SCENE, TWINS, picture_name
from saccade.geometry import Size
from saccade.scoring.policies import Policies
from saccade.scoring.truths import Evidence, Truths

if TYPE_CHECKING:
    from saccade.scoring.twins import TwinPool

FIRST, SECOND = "first", "other_question"
"""Which map it is: of the scene, for its first or for its second question. Maps of twins are called as the twin is."""
READ = tuple(name for name in TWINS if name != "target_recoloured")
"""The twins whose maps are read. The target in another colour has the same place; no score asks for it."""


class Place(NamedTuple):
    """What a map is about."""

    scene: int
    """How-manieth scene of the set."""
    role: str
    """FIRST, SECOND or the name of a twin."""


class SceneFacts(NamedTuple):
    """What is kept of a scene while maps are scored."""

    id: str
    objects: int
    target: int
    other: int
    queries: tuple[str, str]
    images: dict[str, str]
    """Paths by SCENE and TWINS."""
    masks: dict[str, str]


class CausalTruth(Truths):
    """The masks of a causal set, by the names of the maps to hand in."""

    is_fixed = True

    def __init__(self, folder: Path) -> None:
        found = read_causal_set(folder)
        self.where, self.facts = str(folder), found.facts
        self._folder = found.folder
        self.scenes = [_kept(scene.row) for scene in found]
        self.places: dict[str, Place] = {}
        """All maps that can be handed in, scene by scene."""
        self.name(True, "__")

    def name(self, short: bool, separator: str) -> None:
        """See :class:`saccade.scoring.truths.Truths`."""
        self.places = {}
        for number, scene in enumerate(self.scenes):
            first, second = scene.queries
            asked = [(SCENE, first, FIRST), (SCENE, second, SECOND), *((twin, first, twin) for twin in TWINS)]
            for picture, query, role in asked:
                self.places[f"{picture_name(scene.id, picture)}{separator}{query}"] = Place(number, role)
        self.names = {name: place for name, place in self.places.items() if place.role in (FIRST, SECOND)}

    @property
    def wanted(self) -> Iterable[str]:
        """See :class:`saccade.scoring.truths.Truths`."""
        return [name for name, place in self.places.items() if place.role in (FIRST, SECOND, *READ)]

    def evidence(self, names: Sequence[str], size: Size) -> Evidence:
        """See :class:`saccade.scoring.truths.Truths`."""
        (name,) = names
        place = self.names[name]
        scene = self.scenes[place.scene]
        labels = self.labels(scene, SCENE)  # (H,W)
        asked = scene.target if place.role == FIRST else scene.other
        return Evidence((labels == asked + 1)[None], (labels > 0)[None])

    def pool(self, policies: Policies) -> TwinPool:
        """See :class:`saccade.scoring.truths.Truths`."""
        from saccade.scoring.twins import TwinPool

        return TwinPool(self, policies)

    def labels(self, scene: SceneFacts, picture: str) -> Tensor:
        """(H,W) uint8 of a scene or twin, read now: 0 is background, k + 1 is object k."""
        return torch.from_numpy(self._picture(scene, picture).label_map.copy())

    def image(self, scene: SceneFacts, picture: str) -> Tensor:
        """(3,H,W) uint8, read now."""
        return torch.from_numpy(self._picture(scene, picture).image.copy()).permute(2, 0, 1)

    def _picture(self, scene: SceneFacts, picture: str) -> CausalPicture:
        row = {"image": scene.images[picture], "mask": scene.masks[picture]}
        return CausalPicture(self._folder, self.facts.size, scene.objects, row)


def _kept(row: Any) -> SceneFacts:
    def paths(key: str) -> Iterator[tuple[str, str]]:
        yield SCENE, str(row[key])
        yield from ((name, str(row["twins"][name][key])) for name in TWINS)

    asked = row["questions"]
    return SceneFacts(
        id=row["id"],
        objects=len(row["objects"]),
        target=row["target"],
        other=row["other"],
        queries=(asked[0]["query"], asked[1]["query"]),
        images=dict(paths("image")),
        masks=dict(paths("mask")),
    )
