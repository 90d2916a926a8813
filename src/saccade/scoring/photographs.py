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
what removing the target does, effects are not those of objects: there is no table about the model. Nothing is
subtracted.

Axes: R pictures of a photograph (itself, then its twins), N candidates, H and W pixels, h and w cells.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade import geometry
from saccade.data.causal import SCENE, read_causal_set
from saccade.data.causal.photographs import PhotographSet
from saccade.errors import ConfigError, DataError
from saccade.metrics.intervals import ByName
from saccade.metrics.maps.baselines import centre_gaussian
from saccade.metrics.maps.interventions import (
    TIE,
    Moved,
    cause_pairs,
    cause_top,
    gained,
    map_hold,
    misplaced,
    more,
    off_objects,
)
from saccade.metrics.maps.localisation import mass_on, pointing, total_variation, true_positive_strength
from saccade.metrics.maps.twins import even_where_empty
from saccade.scoring.attribution import Attribute, CellMaps, attribution, check_method
from saccade.scoring.networks import Network, open_network
from saccade.scoring.photograph_scores import OWN, PhotographScores
from saccade.scoring.photograph_views import View, chunks, read_ahead, view_of
from saccade.scoring.results import Policies

_DRAWN = 3  # photographs of a kind that are drawn

Maps = Mapping[str, Tensor]
"""Name of a picture (``scene`` or a twin) → its map (1,H,W)."""


def about_scene(maps: Maps, view: View, *, holds_ground: bool) -> dict[str, Tensor]:
    """The scores (1,) about the scene; ``holds_ground``: whether the answer stays on another ground."""
    first, target = maps[SCENE], view.target
    gone = even_where_empty(maps[view.without_target])
    patches, others = view.named("empty"), view.named("removed", other=True)

    def held(names: Iterable[str]) -> Tensor:
        return _mean([map_hold(first, maps[name]).nan_to_num(0.0) for name in names])

    def is_specific(name: str) -> Tensor:
        difference = total_variation(first, gone) - total_variation(first, maps[name])
        return more(difference, TIE).nan_to_num(0.0)

    holds = {
        "map_hold_patch": held(patches),
        "map_hold_removed": held(others),
        "map_hold_ground": held(view.named("background") if holds_ground else ()),
    }
    follow = _mean([])
    if view.target_new is not None:
        follow = gained(first, Moved(maps["moved"], target, view.target_new)).nan_to_num(0.0)
    return {
        "map_follow": follow,
        "map_specific": _mean([is_specific(name) for name in patches or others]),
        "map_hold": torch.stack(list(holds.values())).nanmean(0),
        **holds,
        "strength": true_positive_strength(first, target),
        "pointing": pointing(first, target),
    }


def _mean(values: Sequence[Tensor]) -> Tensor:
    """The mean of values (1,); NaN of none."""
    return torch.stack([value.double() for value in values]).mean(0) if values else torch.tensor([math.nan])


def about_answer(first: Tensor, view: View, effects: Tensor) -> dict[str, Tensor]:
    """The scores (1,) about the model of a map (1,H,W), with the effects (1,N) of the candidates."""
    even = even_where_empty(first).double()
    if len(view.candidates) < 2:  # the only one is right whatever the map
        effects = torch.full_like(effects, math.nan)
    density = mass_on(even, view.masks) / view.masks.double().mean((-2, -1))  # (1,N)
    return {
        "cause_top": cause_top(density, effects),
        "cause_pairs": cause_pairs(density, effects),
        "misplaced": misplaced(even, view.masks, effects),
        "off_objects": off_objects(even, view.objects),
    }


def rivals(view: View, number: int, before: tuple[tuple[str, ...], CellMaps] | None) -> dict[str, Maps]:
    """The maps of each baseline; ``before`` are the names and maps of another photograph."""
    size, names = view.size, view.names
    generator = torch.Generator().manual_seed(number)
    even, noise = torch.ones(1, *size), torch.rand(len(names), *size, generator=generator)
    centre = centre_gaussian(geometry.identity(), size, size)
    oracle = dict.fromkeys(names, view.target.float())
    oracle |= {view.without_target: even} | ({} if view.target_new is None else {"moved": view.target_new.float()})
    maps: dict[str, Maps] = {
        "oracle": oracle,
        "noise": {name: own[None] for name, own in zip(names, noise)},
        "even": dict.fromkeys(names, even),
        "centre": dict.fromkeys(names, centre),
        "edges": {name: own[None] for name, own in zip(names, view.edges)},
    }
    if before is not None:
        known, cells = before
        rows = [known.index(name if name in known else SCENE) for name in names]
        laid = _laid(cells._replace(maps=cells.maps[rows]), view)
        maps["other picture"] = {name: own[None] for name, own in zip(names, laid)}
    return maps


def _laid(cells: CellMaps, view: View) -> Tensor:
    """Maps of cells over the picture (R,H,W)."""
    return geometry.project(cells.maps, geometry.compose(view.canvas.double(), cells.frame.double()), view.size)


@dataclass
class _Scores:
    """What is kept of the photographs: a few numbers of each, and a few maps to draw."""

    scene: ByName = field(default_factory=ByName)
    model: ByName = field(default_factory=ByName)
    effects: ByName = field(default_factory=ByName)
    names: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)  # photographs whose maps hold NaN
    zeros: int = 0  # maps of zeros
    best: list[tuple[float, int, Any]] = field(default_factory=list)
    worst: list[tuple[float, int, Any]] = field(default_factory=list)

    def draw(self, strength: float, drawn: Any) -> None:
        """Keep what is drawn of the best and the worst."""
        for kept, rank in ((self.best, strength), (self.worst, -strength)):
            heapq.heappush(kept, (rank, len(self.names), drawn))
            if len(kept) > _DRAWN:
                heapq.heappop(kept)


def score_photographs(
    photographs: PhotographSet,
    network: Network,
    method: str,
    attribute: Attribute,
    *,
    signed: Callable[[Tensor], Tensor] = torch.abs,
    limit: int | None = None,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> PhotographScores:
    """Score a method on a network; memory does not grow with the number of photographs.

    Args:
        photographs: the set.
        network: the classifier.
        method: what the method is called.
        attribute: the method.
        signed: what becomes of values below 0.
        limit: of the set the first so many photographs; None: all.
        on_progress: called with what is going on, how far it is, and how far it goes.
    """
    total = min(len(photographs), limit or len(photographs))
    kept = _Scores()
    before: tuple[tuple[str, ...], CellMaps] | None = None
    with network.evaluating():
        for views in chunks(read_ahead(islice(photographs, limit), partial(view_of, network=network))):
            on_progress(f"{method} of {network.name}", len(kept.names), total)
            inputs = torch.cat([view.inputs for view in views]).to(network.device)  # (n,3,h,w)
            counts = [len(view.names) for view in views]
            with torch.no_grad():
                shares = network.logits(inputs).softmax(-1).double()  # (n,K)
            firsts = torch.tensor([0, *counts[:-1]], device=network.device).cumsum(0)
            classes = shares[firsts].argmax(-1).repeat_interleave(torch.tensor(counts, device=network.device))  # (n,)
            cells = attribute(inputs, classes)
            if len(cells.maps) != len(inputs):
                raise DataError(
                    f"method {method}: {len(cells.maps)} maps of {len(inputs)} pictures; return one for each"
                )
            share = shares.gather(1, classes[:, None])[:, 0].cpu()  # (n,)
            stays = (shares.argmax(-1) == classes).cpu()  # (n,)
            maps = signed(cells.maps.detach().float().cpu())
            frame = cells.frame.detach().cpu()
            for view, own, p, same in zip(views, *(torch.split(every, counts) for every in (maps, share, stays))):
                mine = CellMaps(own, frame)
                kept.names.append(view.photograph.id)
                if not bool(own.isfinite().all()):
                    kept.broken.append(kept.names.pop())
                    continue
                _add(kept, view, mine, before, p, same)
                before = (view.names, CellMaps(own.clone(), frame))
    if not kept.names:
        raise DataError(f"method {method}: no map could be scored, {len(kept.broken)} hold NaN or infinity")
    return PhotographScores(
        method=method,
        model=network.name,
        truth=str(photographs.folder),
        facts=photographs.facts,
        network=network.facts,
        names=tuple(kept.names),
        scene=kept.scene,
        about_model=kept.model,
        effects=kept.effects,
        broken=tuple(kept.broken),
        zeros=kept.zeros,
        drawn={
            "Best": [drawn for _, _, drawn in sorted(kept.best, key=lambda each: each[:2], reverse=True)],
            "Worst": [drawn for _, _, drawn in sorted(kept.worst, key=lambda each: each[:2], reverse=True)],
        },
    )


def score_method(
    truth: str | Path,
    method: Any,
    model: Any,
    policies: Policies,
    *,
    layer: str | None = None,
    size: int | None = None,
    device: str = "auto",
    limit: int | None = None,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> PhotographScores:
    """Open a set, a network and a method by their names, and score; see :func:`saccade.score`."""
    if method is None or model is None:
        raise ConfigError(
            f"{truth}: a causal set of photographs is scored with a model and a method, such as "
            "--model timm:resnet50 --method gradcam"
        )
    check_method(method)  # before a model is opened
    photographs = read_causal_set(truth)
    network = open_network(model, size=size, device=device)
    called, attribute = attribution(method, network, layer=layer)
    signed = policies.with_sign
    options: dict[str, Any] = {"signed": signed, "limit": limit, "on_progress": on_progress}
    return score_photographs(photographs, network, called, attribute, **options)  # type: ignore[arg-type]  # it is one


def _add(
    kept: _Scores,
    view: View,
    cells: CellMaps,
    before: tuple[tuple[str, ...], CellMaps] | None,
    share: Tensor,
    stays: Tensor,
) -> None:
    """Score one photograph; ``share`` (R,) is p, ``stays`` (R,) whether the answer is still the class."""
    moves = dict(zip(view.names, (share - share[0]).abs()))  # |Δp|
    same = dict(zip(view.names, stays.tolist()))
    laid = {name: own[None] for name, own in zip(view.names, _laid(cells, view))}
    kept.zeros += int((cells.maps == 0).flatten(1).all(1).sum())
    effects = torch.stack([moves[name] for name in view.candidates] or [torch.tensor(math.nan).double()])[None]  # (1,N)
    rows: dict[str, Maps] = {OWN: laid, **rivals(view, len(kept.names), before)}
    holds_ground = all(same[name] for name in view.named("background"))
    scene = {name: about_scene(maps, view, holds_ground=holds_ground) for name, maps in rows.items()}
    model = {name: about_answer(maps[SCENE], view, effects) for name, maps in rows.items()}
    cause = view.masks[:, int(effects[0].nan_to_num(0.0).argmax())].float()  # (1,H,W)
    model["cause"] = about_answer(cause, view, effects)
    for group, scores in ((kept.scene, scene), (kept.model, model)):
        scores.setdefault("other picture", {name: torch.tensor([math.nan]) for name in scores[OWN]})  # of the first
        for name, values in scores.items():
            group.add_values(name, values)
    changes = {
        "target": [view.without_target],
        "others": view.named("removed", other=True),
        "patch": view.named("empty"),
        "moved": view.named("moved"),
        "ground": view.named("background"),
    }
    for change, twins in changes.items():
        here = [name for name in twins if name in moves]
        sides = [view.photograph.twins[name].row.get("scale") or 1.0 for name in here]
        found = {
            "effect": [moves[name][None] for name in here],
            "changes": [torch.tensor([float(not same[name])]) for name in here],
            "scale": [torch.tensor([float(side)]) for side in sides],
        }
        kept.effects.add_values(change, {name: _mean(values) for name, values in found.items()})
    strength = float(scene[OWN]["strength"])
    kept.draw(strength, (view.photograph, view.names, cells, view.canvas, share, strength))
