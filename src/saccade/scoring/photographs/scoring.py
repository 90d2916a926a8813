"""Photographs with twins as truth: scores of maps that a method makes of any classifier, see :mod:`.networks`.

A photograph and its twins (:mod:`saccade.data.causal.photographs.format`) go through the network together. What is
explained is the class that it gives to the photograph, with the share p; twins are explained for the same class. Maps
are laid over the photograph. Those of all zeros are read as even once the target is gone; elsewhere they score 0 about
the scene and are read as even about the model.

**What moves the answer**: |Δp| of that class, for each kind of change. Filling in is itself a change. Where a patch of
ground moves the answer by more than a tenth of what removing an object does (the target, or the others where they do
more), effects are not those of objects: there is no table about the model. Scores are those of :mod:`.measures`.

Axes: R pictures of a photograph (itself, then its twins), n pictures of several photographs, N candidates, K classes,
H and W pixels, h and w cells.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from saccade.data.causal.photographs.format import Photograph, PhotographSet
from saccade.data.causal.scenes import read_causal_set
from saccade.errors import ConfigError, DataError
from saccade.progress import OnProgress, no_progress
from saccade.scoring.attribution import attribution, check_method
from saccade.scoring.cam import CellMaps
from saccade.scoring.networks import Network, NetworkOptions, open_network
from saccade.scoring.photographs.measures import (
    NamedMaps,
    PreparedPhotograph,
    about_answer,
    about_scene,
    prepare_photograph,
    rivals,
)
from saccade.scoring.photographs.results import OWN, Drawn, PhotographScores
from saccade.scoring.results import Policies

_PICTURES_AT_ONCE = 32  # pictures that go through the network together
_AHEAD = 6  # photographs that are read while others are scored


def score_photographs(
    truth: str | Path,
    method: Any,
    model: Any,
    policies: Policies,
    options: NetworkOptions,
    *,
    limit: int | None = None,
    on_progress: OnProgress = no_progress,
) -> PhotographScores:
    """Score a method on a network and a set; memory does not grow with the set. See :func:`saccade.score`."""
    if method is None or model is None:
        raise ConfigError(
            f"{truth}: a causal set of photographs is scored with a model and a method, such as "
            "--model timm:resnet50 --method gradcam"
        )
    check_method(method)  # before a model is opened
    causal_set = cast(PhotographSet, read_causal_set(truth))
    network = open_network(model, options)
    called, attribute = attribution(method, network, layer=options.layer)
    scores = PhotographScores(called, network.name, str(causal_set.folder), causal_set.facts, network.facts)
    scores.classes = network.classes
    total = min(len(causal_set), limit or len(causal_set))
    before: NamedMaps | None = None

    def read(photograph: Photograph) -> PreparedPhotograph:
        causal_set.check_files(photograph.row)
        return prepare_photograph(photograph, network)

    with network.evaluating():
        for photographs in chunks(read_ahead(islice(causal_set, limit), read)):
            on_progress(f"{called} of {network.name}", len(scores.names), total)
            inputs = torch.cat([prepared.inputs for prepared in photographs]).to(network.device)  # (n,3,h,w)
            counts = [len(prepared.names) for prepared in photographs]
            classes, share, stays = _answers(network, inputs, counts)
            cells = attribute(inputs, classes)
            if len(cells.maps) != len(inputs):
                raise DataError(
                    f"method {called}: {len(cells.maps)} maps of {len(inputs)} pictures; return one for each"
                )
            maps = cells.maps.detach().float().cpu()
            negative = (maps < 0).flatten(1).any(1) & (policies.signed != "keep")  # (n,)
            maps = policies.with_sign(maps.nan_to_num(0.0, 0.0, 0.0) if policies.nan == "zero" else maps)
            frame = cells.frame.detach().cpu()
            parts = (torch.split(values, counts) for values in (maps, share, stays, negative, classes.cpu()))
            for prepared, own, p, same, signed, (answer, *_) in zip(photographs, *parts):
                if prepared.photograph.label is not None:
                    scores.answers.append((prepared.photograph.label, int(answer)))
                if bool(own.isfinite().all()):
                    _add(scores, prepared, CellMaps(own, frame), before, p, same)
                    scores.signed += int(signed.sum())
                    before = (prepared.names, CellMaps(own.clone(), frame))
                    continue
                name = prepared.photograph.id
                if policies.nan == "stop":
                    raise DataError(f"'{name}': holds NaN or infinity; `nan=skip` leaves such maps out and counts them")
                scores.broken.append(name)
    if not scores.names:
        raise DataError(f"method {called}: no map could be scored, {len(scores.broken)} hold NaN or infinity")
    return scores


@torch.no_grad()
def _answers(network: Network, inputs: Tensor, counts: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """For each picture (n,): the class of its photograph, the share p of that class, and whether it is the answer.

    ``inputs`` are the pictures of several photographs, of which each has so many as ``counts`` says.
    """
    shares = network.logits(inputs).softmax(-1).double()  # (n,K)
    firsts = torch.tensor([0, *counts[:-1]], device=network.device).cumsum(0)
    classes = shares[firsts].argmax(-1).repeat_interleave(torch.tensor(counts, device=network.device))
    return classes, shares.gather(1, classes[:, None])[:, 0].cpu(), (shares.argmax(-1) == classes).cpu()


def _add(
    kept: PhotographScores,
    prepared: PreparedPhotograph,
    cells: CellMaps,
    before: NamedMaps | None,
    share: Tensor,
    stays: Tensor,
) -> None:
    """Score one photograph; ``share`` (R,) is p, ``stays`` (R,) whether the answer is still the class."""
    kept.names.append(prepared.photograph.id)
    kept.pictures += len(prepared.names)
    kept.zeros += int((cells.maps == 0).flatten(1).all(1).sum())
    moves = (share - share[0]).abs()  # (R,): |Δp|
    effects = moves[list(prepared.candidates)][None]  # (1,N)
    maps = {OWN: cells.over(prepared.canvas, prepared.photograph.size), **rivals(prepared, len(kept.names), before)}
    holds_ground = bool(stays[prepared.twins("background")].all())
    scene = {name: about_scene(own, prepared, holds_ground=holds_ground) for name, own in maps.items()}
    model = {name: about_answer(own[:1], prepared, effects) for name, own in maps.items()}
    cause = prepared.masks[:, int(effects[0].argmax())].float()  # (1,H,W)
    model["cause"] = about_answer(cause, prepared, effects)
    for group, scores in ((kept.scene, scene), (kept.about_model, model)):
        scores.setdefault("other picture", {name: torch.tensor([math.nan]) for name in scores[OWN]})  # of the first
        for name, values in scores.items():
            group.add_values(name, values)
    changes = {
        "target": [prepared.without_target],
        "others": prepared.twins("removed", other=True),
        "patch": prepared.twins("empty"),
        "moved": prepared.twins("moved"),
        "ground": prepared.twins("background"),
    }
    sides = [1.0, *(twin.row.get("scale") or 1.0 for twin in prepared.photograph.twins.values())]
    columns = {"effect": moves, "changes": (~stays).double(), "scale": torch.tensor(sides).double()}  # (R,) each
    for change, twins in changes.items():
        kept.effects.add_values(change, {name: values[twins].mean()[None] for name, values in columns.items()})
    strength = float(scene[OWN]["strength"])
    kept.draw(Drawn(prepared.photograph, prepared.names, cells, prepared.canvas, share, strength))


def read_ahead(
    photographs: Iterable[Photograph], read: Callable[[Photograph], PreparedPhotograph]
) -> Iterator[PreparedPhotograph]:
    """The prepared photographs in order; a few are read by threads while others are scored."""
    waiting: deque[Any] = deque()
    with ThreadPoolExecutor(2, thread_name_prefix="saccade-reading") as pool:
        for photograph in photographs:
            waiting.append(pool.submit(read, photograph))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def chunks(photographs: Iterable[PreparedPhotograph]) -> Iterator[list[PreparedPhotograph]]:
    """Photographs together that have about as many pictures as go through a network at once."""
    chunk: list[PreparedPhotograph] = []
    for prepared in photographs:
        chunk.append(prepared)
        if sum(len(other.names) for other in chunk) >= _PICTURES_AT_ONCE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
