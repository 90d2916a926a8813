"""Photographs with twins as truth: scores of maps that a method makes of any classifier, see :mod:`.networks`.

A photograph and its twins (:mod:`saccade.data.causal.photographs`) go through the network together. What is explained
is the class that it gives to the photograph, with the share p; twins are explained for the same class. Maps are laid
over the photograph. Those of all zeros are read as even once the target is gone; elsewhere they score 0 about the scene
and are read as even about the model.

**What moves the answer**: |Δp| of that class, for each kind of change.

**About the model.** *Candidates* are the objects that a twin removes and the patches that a twin fills in where nothing
lies. The effect e of a candidate is its |Δp|. Scores are those of :mod:`saccade.metrics.maps.interventions`, with these
effects. ``cause_top`` and ``cause_pairs`` rank candidates by their mass divided by their share of the picture, so that
an even map has no favourite. ``misplaced`` is the share of the mass on candidates that lies on those without an effect,
``off_objects`` that on no object; area counts in both, so read them beside the even map. A photograph with a single
candidate has ``off_objects`` alone.

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

**The tool.** Filling in is itself a change. Where a patch where nothing lies moves the answer by more than a tenth of
what removing an object does (the target, or the others where they do more), effects are not those of objects: there is
no table about the model. Nothing is subtracted.

Axes: R pictures of a photograph (itself, then its twins), N candidates, H and W pixels, h and w cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from saccade import geometry
from saccade.data.causal import SCENE, read_causal_set
from saccade.data.causal.photographs import Photograph, PhotographSet
from saccade.errors import ConfigError, DataError
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
from saccade.scoring.attribution import CellMaps, attribution, check_method
from saccade.scoring.networks import open_network
from saccade.scoring.photograph_scores import OWN, Drawn, PhotographScores
from saccade.scoring.photograph_views import View, chunks, read_ahead, view_of
from saccade.scoring.results import Policies

_Named = tuple[tuple[str, ...], CellMaps]  # the names of pictures and their maps


def about_scene(maps: Tensor, view: View, *, holds_ground: bool) -> dict[str, Tensor]:
    """The scores (1,) about the scene, of maps (R,H,W); ``holds_ground``: whether the answer stays on another ground.

    Maps (1,H,W) are those of all pictures.
    """
    first, gone = maps[:1], view.without_target
    maps = maps.expand(len(view.names), *view.photograph.size)
    apart = total_variation(first, maps).double()  # (R,)
    apart_gone = total_variation(first, even_where_empty(maps[gone : gone + 1])).double()  # (1,)
    patches, others = view.twins("empty"), view.twins("removed", other=True)
    holds = {
        "map_hold_patch": 1 - apart[patches],
        "map_hold_removed": 1 - apart[others],
        "map_hold_ground": 1 - apart[view.twins("background") if holds_ground else []],
    }
    means = {name: values.nan_to_num(0.0).mean() for name, values in holds.items()}  # NaN of none
    follow = torch.full((1,), torch.nan)
    if view.target_new is not None:
        moved = maps[view.names.index("moved")][None]
        follow = gained(first, Moved(moved, view.target, view.target_new)).nan_to_num(0.0)
    lies = CheckedMaps(first, Region(view.target))
    return {
        "map_follow": follow,
        "map_specific": more(apart_gone - apart[patches or others], TIE).nan_to_num(0.0).mean()[None],
        "map_hold": torch.stack([*means.values()]).nanmean()[None],
        **{name: mean[None] for name, mean in means.items()},
        "strength": lies.true_positive_strength(),
        "pointing": lies.pointing(),
    }


def about_answer(first: Tensor, view: View, effects: Tensor) -> dict[str, Tensor]:
    """The scores (1,) about the model of a map (1,H,W), with the effects (1,N) of the candidates."""
    even = even_where_empty(first).double()
    if len(view.candidates) < 2:  # the only one is right whatever the map
        effects = torch.full_like(effects, torch.nan)
    density = mass_on(even, view.masks) / view.masks.double().mean((-2, -1))  # (1,N)
    return {
        "cause_top": cause_top(density, effects),
        "cause_pairs": cause_pairs(density, effects),
        "misplaced": misplaced(even, view.masks, effects),
        "off_objects": off_objects(even, view.objects),
    }


def rivals(view: View, number: int, before: _Named | None) -> dict[str, Tensor]:
    """The maps of each baseline, (R,H,W), or (1,H,W) for all pictures; ``before`` are those of another photograph."""
    size, names = view.photograph.size, view.names
    oracle = view.target.float().repeat(len(names), 1, 1)
    oracle[view.without_target] = 1
    if view.target_new is not None:
        oracle[names.index("moved")] = view.target_new[0].float()
    maps = {
        "oracle": oracle,
        "noise": torch.rand(len(names), *size, generator=torch.Generator().manual_seed(number)),
        "even": torch.ones(1, *size),
        "centre": _centre(size),
        "edges": view.edges,
    }
    if before is not None:
        known, cells = before
        rows = [known.index(name if name in known else SCENE) for name in names]
        maps["other picture"] = cells._replace(maps=cells.maps[rows]).over(view.canvas, size)
    return maps


@lru_cache(maxsize=16)
def _centre(size: Size) -> Tensor:
    """The Gaussian (1,H,W) of pictures of that size."""
    return centre_gaussian(geometry.identity(), size, size)


def score_photographs(
    truth: str | Path,
    method: Any,
    model: Any,
    policies: Policies,
    *,
    layer: str | None = None,
    size: int | None = None,
    fit: str = "inside",
    device: str = "auto",
    limit: int | None = None,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> PhotographScores:
    """Score a method on a network and a set; memory does not grow with the set. See :func:`saccade.score`."""
    if method is None or model is None:
        raise ConfigError(
            f"{truth}: a causal set of photographs is scored with a model and a method, such as "
            "--model timm:resnet50 --method gradcam"
        )
    check_method(method)  # before a model is opened
    photographs = cast(PhotographSet, read_causal_set(truth))
    network = open_network(model, size=size, fit=fit, device=device)
    called, attribute = attribution(method, network, layer=layer)
    scores = PhotographScores(called, network.name, str(photographs.folder), photographs.facts, network.facts)
    total = min(len(photographs), limit or len(photographs))
    before: _Named | None = None

    def read(photograph: Photograph) -> View:
        photographs.check_files(photograph.row)
        return view_of(photograph, network)

    with network.evaluating():
        for views in chunks(read_ahead(islice(photographs, limit), read)):
            on_progress(f"{called} of {network.name}", len(scores.names), total)
            inputs = torch.cat([view.inputs for view in views]).to(network.device)  # (n,3,h,w)
            counts = [len(view.names) for view in views]
            with torch.no_grad():
                shares = network.logits(inputs).softmax(-1).double()  # (n,K)
            firsts = torch.tensor([0, *counts[:-1]], device=network.device).cumsum(0)
            classes = shares[firsts].argmax(-1).repeat_interleave(torch.tensor(counts, device=network.device))  # (n,)
            cells = attribute(inputs, classes)
            if len(cells.maps) != len(inputs):
                raise DataError(
                    f"method {called}: {len(cells.maps)} maps of {len(inputs)} pictures; return one for each"
                )
            share = shares.gather(1, classes[:, None])[:, 0].cpu()  # (n,)
            stays = (shares.argmax(-1) == classes).cpu()  # (n,)
            maps = cells.maps.detach().float().cpu()
            negative = (maps < 0).flatten(1).any(1) & (policies.signed != "keep")  # (n,)
            maps = policies.with_sign(maps.nan_to_num(0.0, 0.0, 0.0) if policies.nan == "zero" else maps)
            frame = cells.frame.detach().cpu()
            parts = (torch.split(every, counts) for every in (maps, share, stays, negative))
            for view, own, p, same, signed in zip(views, *parts):
                if bool(own.isfinite().all()):
                    _add(scores, view, CellMaps(own, frame), before, p, same)
                    scores.signed += int(signed.sum())
                    before = (view.names, CellMaps(own.clone(), frame))
                    continue
                name = view.photograph.id
                if policies.nan == "stop":
                    raise DataError(f"'{name}': holds NaN or infinity; `nan=skip` leaves such maps out and counts them")
                scores.broken.append(name)
    if not scores.names:
        raise DataError(f"method {called}: no map could be scored, {len(scores.broken)} hold NaN or infinity")
    return scores


def _add(
    kept: PhotographScores, view: View, cells: CellMaps, before: _Named | None, share: Tensor, stays: Tensor
) -> None:
    """Score one photograph; ``share`` (R,) is p, ``stays`` (R,) whether the answer is still the class."""
    kept.names.append(view.photograph.id)
    kept.pictures += len(view.names)
    kept.zeros += int((cells.maps == 0).flatten(1).all(1).sum())
    moves = (share - share[0]).abs()  # (R,): |Δp|
    effects = moves[list(view.candidates)][None]  # (1,N)
    maps = {OWN: cells.over(view.canvas, view.photograph.size), **rivals(view, len(kept.names), before)}
    holds_ground = bool(stays[view.twins("background")].all())
    scene = {name: about_scene(own, view, holds_ground=holds_ground) for name, own in maps.items()}
    model = {name: about_answer(own[:1], view, effects) for name, own in maps.items()}
    cause = view.masks[:, int(effects[0].argmax())].float()  # (1,H,W)
    model["cause"] = about_answer(cause, view, effects)
    for group, scores in ((kept.scene, scene), (kept.about_model, model)):
        scores.setdefault("other picture", {name: torch.tensor([math.nan]) for name in scores[OWN]})  # of the first
        for name, values in scores.items():
            group.add_values(name, values)
    changes = {
        "target": [view.without_target],
        "others": view.twins("removed", other=True),
        "patch": view.twins("empty"),
        "moved": view.twins("moved"),
        "ground": view.twins("background"),
    }
    sides = [1.0, *(twin.row.get("scale") or 1.0 for twin in view.photograph.twins.values())]
    columns = {"effect": moves, "changes": (~stays).double(), "scale": torch.tensor(sides).double()}  # (R,) each
    for change, twins in changes.items():
        kept.effects.add_values(change, {name: values[twins].mean()[None] for name, values in columns.items()})
    strength = float(scene[OWN]["strength"])
    kept.draw(Drawn(view.photograph, view.names, cells, view.canvas, share, strength))
