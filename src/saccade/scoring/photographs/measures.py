"""A photograph with its twins as a network takes them, and the scores of the maps of one, beside baselines.

**About the model.** *Candidates* are the objects that a twin removes and the patches that a twin fills in where nothing
lies. The effect e of a candidate is its |Δp|. Scores are those of :mod:`saccade.metrics.maps.interventions`, with these
effects. ``cause_top`` and ``cause_pairs`` rank candidates by their mass divided by their share of the picture, so that
an even map has no favourite. Area counts in ``misplaced`` and ``off_objects``, so read them beside the even map. A
photograph with a single candidate has ``off_objects`` alone.

**About the scene.** No answer is read, but for one thing: a new ground counts only where the answer stays.

=================  =================================================================================================
``map_follow``     ½[Δm_new − Δm_old] of the target moved: 0 for a map that ignores it
``map_specific``   P(TV(target removed) > TV(something else removed)), a tie counts ½: a patch where nothing lies, or
                   other objects where the set has no such patches
``map_hold``       1 − TV when a patch or another object is removed, or the ground is another one; a map that never
                   moves has 1
``strength``       the share of the map on the target
``pointing``       whether its maximum lies on it
=================  =================================================================================================

**Baselines** have the same scores: the target's mask (``oracle``), the candidate with the largest effect (``cause``,
about the model alone), noise, an even map, a Gaussian in the centre, Sobel edges, and the map of the photograph before.

Axes: R pictures of a photograph (itself, then its twins), N candidates, K objects, H and W pixels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.data.causal.photographs.format import Photograph
from saccade.data.causal.row_folder import SCENE
from saccade.geometry import Size
from saccade.metrics.maps.baselines import centre_gaussian
from saccade.metrics.maps.interventions import (
    TIE,
    Moved,
    cause_pairs,
    cause_top,
    gained,
    misplaced,
    more,
    off_objects,
)
from saccade.metrics.maps.localisation import CheckedMaps, Region, mass_on, total_variation
from saccade.metrics.maps.twins import even_where_empty
from saccade.scoring.cam import CellMaps
from saccade.scoring.networks import Network

NamedMaps = tuple[tuple[str, ...], CellMaps]  # The names of pictures and their maps


class PreparedPhotograph(NamedTuple):
    """A photograph with its twins, as the network takes them, and where things are."""

    photograph: Photograph
    names: tuple[str, ...]  # ``scene``, then its twins
    inputs: Tensor  # (R,3,h,w)
    canvas: Tensor  # (2,3): network input → picture
    edges: Tensor  # (R,H,W): Sobel edges
    target: Tensor  # (1,H,W) bool
    target_new: Tensor | None  # (1,H,W) bool: after its move
    candidates: tuple[int, ...]  # the pictures without them
    masks: Tensor  # (1,N,H,W) bool: of the candidates
    objects: Tensor  # (1,K,H,W) bool

    def twins(self, change: str, *, other: bool = False) -> list[int]:
        """The numbers of the twins with that change; ``other``: not those of the target."""
        twins, target = self.photograph.twins, self.photograph.target
        numbered = [(number, twins[name]) for number, name in enumerate(self.names) if name in twins]
        return [number for number, twin in numbered if twin.change == change and not (other and twin.object == target)]

    @property
    def without_target(self) -> int:
        """The number of the twin without the target."""
        return self.names.index(f"removed-{self.photograph.target}")


def prepare_photograph(photograph: Photograph, network: Network) -> PreparedPhotograph:
    """Read a photograph and its twins."""
    pictures = {SCENE: photograph, **photograph.twins}
    images = [picture.image for picture in pictures.values()]  # (H,W,3) each
    inputs = [network.prepare(image) for image in images]
    labels = torch.from_numpy(photograph.label_map.copy())  # (H,W)
    objects = torch.stack([labels == number + 1 for number in range(len(photograph.objects))])  # (K,H,W)
    free = labels == 0
    masks: dict[int, Tensor] = {}
    for number, twin in enumerate(photograph.twins.values(), 1):
        if twin.change == "removed" and twin.object is not None:
            masks[number] = objects[twin.object]
        elif twin.change == "empty":
            masks[number] = torch.from_numpy(twin.changed.copy()) & free
            free = free & ~masks[number]  # masks of candidates do not overlap
    masks = {number: mask for number, mask in masks.items() if bool(mask.any())}
    new = None
    if "moved" in photograph.twins:
        new = torch.from_numpy(photograph.twins["moved"].label_map == photograph.target + 1)[None]
    return PreparedPhotograph(
        photograph,
        tuple(pictures),
        torch.stack([image for image, _ in inputs]),
        inputs[0][1],
        sobel(torch.from_numpy(np.stack(images))),
        objects[photograph.target][None],
        new,
        tuple(masks),
        torch.stack(list(masks.values()) or [objects[photograph.target]])[None],
        objects[None],
    )


def sobel(images: Tensor) -> Tensor:
    """How steep pictures (R,H,W,3) are, by Sobel's two filters on their mean colour; the border pixels go on."""
    red, green, blue = images.float().unbind(-1)
    grey = F.pad((red + green + blue)[:, None] / 3, (1, 1, 1, 1), mode="replicate")[:, 0]  # (R,H+2,W+2)
    right, down = grey[:, :, 2:] - grey[:, :, :-2], grey[:, 2:] - grey[:, :-2]  # (R,H+2,W), (R,H,W+2)
    across = right[:, :-2] + 2 * right[:, 1:-1] + right[:, 2:]  # (R,H,W)
    along = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]  # (R,H,W)
    return torch.hypot(across, along)


def about_scene(maps: Tensor, prepared: PreparedPhotograph, *, holds_ground: bool) -> dict[str, Tensor]:
    """The scores (1,) about the scene, of maps (R,H,W); ``holds_ground``: whether the answer stays on another ground.

    Maps (1,H,W) are those of all pictures.
    """
    first, gone = maps[:1], prepared.without_target
    maps = maps.expand(len(prepared.names), *prepared.photograph.size)
    apart = total_variation(first, maps).double()  # (R,)
    apart_gone = total_variation(first, even_where_empty(maps[gone : gone + 1])).double()  # (1,)
    patches, others = prepared.twins("empty"), prepared.twins("removed", other=True)
    holds = {
        "map_hold_patch": 1 - apart[patches],
        "map_hold_removed": 1 - apart[others],
        "map_hold_ground": 1 - apart[prepared.twins("background") if holds_ground else []],
    }
    means = {name: values.nan_to_num(0.0).mean() for name, values in holds.items()}  # NaN of none
    follow = torch.full((1,), torch.nan)
    if prepared.target_new is not None:
        moved = maps[prepared.names.index("moved")][None]
        follow = gained(first, Moved(moved, prepared.target, prepared.target_new)).nan_to_num(0.0)
    lies = CheckedMaps(first, Region(prepared.target))
    return {
        "map_follow": follow,
        "map_specific": more(apart_gone - apart[patches or others], TIE).nan_to_num(0.0).mean()[None],
        "map_hold": torch.stack([*means.values()]).nanmean()[None],
        **{name: mean[None] for name, mean in means.items()},
        "strength": lies.true_positive_strength(),
        "pointing": lies.pointing(),
    }


def about_answer(first: Tensor, prepared: PreparedPhotograph, effects: Tensor) -> dict[str, Tensor]:
    """The scores (1,) about the model of a map (1,H,W), with the effects (1,N) of the candidates."""
    even = even_where_empty(first).double()
    if len(prepared.candidates) < 2:  # the only one is right whatever the map
        effects = torch.full_like(effects, torch.nan)
    density = mass_on(even, prepared.masks) / prepared.masks.double().mean((-2, -1))  # (1,N)
    return {
        "cause_top": cause_top(density, effects),
        "cause_pairs": cause_pairs(density, effects),
        "misplaced": misplaced(even, prepared.masks, effects),
        "off_objects": off_objects(even, prepared.objects),
    }


def rivals(prepared: PreparedPhotograph, number: int, before: NamedMaps | None) -> dict[str, Tensor]:
    """The maps of each baseline, (R,H,W), or (1,H,W) for all pictures; ``before`` are those of another photograph."""
    size, names = prepared.photograph.size, prepared.names
    oracle = prepared.target.float().repeat(len(names), 1, 1)
    oracle[prepared.without_target] = 1
    if prepared.target_new is not None:
        oracle[names.index("moved")] = prepared.target_new[0].float()
    maps = {
        "oracle": oracle,
        "noise": torch.rand(len(names), *size, generator=torch.Generator().manual_seed(number)),
        "even": torch.ones(1, *size),
        "centre": _centre(size),
        "edges": prepared.edges,
    }
    if before is not None:
        known, cells = before
        rows = [known.index(name if name in known else SCENE) for name in names]
        maps["other picture"] = cells._replace(maps=cells.maps[rows]).over(prepared.canvas, size)
    return maps


@lru_cache(maxsize=16)
def _centre(size: Size) -> Tensor:
    return centre_gaussian(geometry.identity(), size, size)
