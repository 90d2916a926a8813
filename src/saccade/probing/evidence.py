"""What the kept head rests on, and whether its maps beat chance, where boxes or masks say where labels can be seen.

Every picture is answered by the head of the split that tests it, which never saw it. Pictures are changed before the
backbone sees them (:mod:`saccade.metrics.evidence_swap`), so a changed picture costs a pass of the backbone.

Axes: N pictures, n pictures of a split, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from saccade.errors import ConfigError
from saccade.geometry import Size
from saccade.metrics.evidence_swap import RestsOn, sampled
from saccade.metrics.maps.baselines import seen_by_cells
from saccade.metrics.maps.grids import grids_of
from saccade.metrics.maps.points import at_points
from saccade.metrics.maps.scorer import Baseline, MapScorer
from saccade.metrics.summary import without_nan
from saccade.metrics.verdict import against_chance, joined
from saccade.models.base import PictureModel
from saccade.models.probe_heads import LINEAR
from saccade.probing.head_stack import Places
from saccade.probing.pictures import Features, ProbedPictures, Tell
from saccade.probing.probe import Probed
from saccade.tasks.forward_passes import in_parts
from saccade.trace import AttentionTrace

MOST_MAPS = 1000
"""Pictures whose maps are scored."""
_AT_ONCE = 100  # pictures that are changed, or whose maps are scored, together

HeadModel = Callable[[int], PictureModel]
"""Number of a split → a model with the head of that split."""


def places_of(pictures: ProbedPictures, frame: Tensor, grid: Size, weight: float) -> Places | None:
    """Where labels can be seen on the cells of the features, for heads that are taught where to look.

    Args:
        pictures: N pictures.
        frame: (2,3) cells of the features → pixels of the network input.
        grid: (h, w) of the features.
        weight: of the loss; 0: nobody is taught.

    Raises:
        ConfigError: the pictures have no evidence.
    """
    if not weight:
        return None
    if pictures.evidence is None:
        raise ConfigError(
            "evidence weight: no picture has evidence; name data with boxes or masks (a table with a column box or "
            "mask, COCO annotations), or leave it out"
        )
    parts = torch.split(torch.arange(len(pictures)), _AT_ONCE)
    found = [seen_by_cells(pictures.evidence.take(pictures.places[part]), frame, grid) for part in parts]
    everywhere = torch.ones(1, *pictures.store.size, dtype=torch.bool)
    return Places(torch.cat(found), seen_by_cells(everywhere, frame, grid), weight)


@torch.no_grad()
def with_evidence(probed: Probed, features: Features, model_of: HeadModel, tell: Tell) -> Probed:
    """The same probe, whose verdict says what the kept head rests on and how its maps lie on the evidence."""
    if probed.pictures.evidence is None:
        return probed
    rests = _rests_on(probed, model_of, tell).summary()
    maps = {} if probed.kept.name == LINEAR else against_chance(_map_scores(probed, features, model_of))
    verdict = "; ".join(filter(None, (probed.verdict, joined([rests, maps]))))
    return replace(probed, rests_on=without_nan(rests), maps=without_nan(maps), verdict=verdict)


def _rests_on(probed: Probed, model_of: HeadModel, tell: Tell) -> RestsOn:
    """Answers to changed test pictures of all splits."""
    rests, pictures = RestsOn(), probed.pictures
    chosen = torch.zeros(len(pictures), dtype=torch.bool)
    chosen[sampled(len(pictures))] = True
    total, done = int(chosen.sum()), 0
    for number, split in enumerate(probed.splits):
        model = model_of(number)
        common = int(torch.bincount(pictures.labels[split.train]).argmax())
        tested = split.test[chosen[split.test]]
        for part in _mixed(tested):
            label = pictures.labels[part]  # (n,)
            evidence = pictures.evidence_of(part)  # (n,H,W)
            if evidence is None:
                continue

            def right(images: Tensor, rows: Tensor, model: PictureModel = model, label: Tensor = label) -> Tensor:
                return in_parts(model, images)["logits"].argmax(-1) == label[rows]

            images = pictures.images(part)
            rests.add(images, evidence, right, labels=label, pictures=part, guessed=label == common)
            done += len(part)
            tell("pictures without their evidence", done, total)
    return rests


def _map_scores(probed: Probed, features: Features, model_of: HeadModel) -> MapScorer:
    """The maps of test pictures on their evidence, beside the blind ones."""
    pictures, scorer = probed.pictures, MapScorer(scores=("pointing",), baselines=("uniform", "centre_gaussian"))
    chosen = torch.zeros(len(pictures), dtype=torch.bool)
    chosen[sampled(len(pictures), MOST_MAPS)] = True
    size = pictures.store.size
    for number, split in enumerate(probed.splits):
        model = model_of(number)
        place = _usual_place(pictures, split.train)  # (2,)
        for part in _mixed(split.test[chosen[split.test]]):
            evidence = pictures.evidence_of(part)
            if evidence is not None and bool(evidence.any()):
                trace = model.wrap(model.respond(features.encoded(probed.kept.name, part)), size).trace
                scorer.add_trace(trace, evidence, groups=part, beside=_blind(pictures, part, place, trace))
    return scorer


def _blind(pictures: ProbedPictures, part: Tensor, place: Tensor, trace: AttentionTrace) -> dict[str, Baseline]:
    """The centre of the box round a mask, and the place where evidence usually lies, on the grids of the model."""
    size = pictures.store.size
    grids = grids_of(trace, size)
    if pictures.evidence is None or grids is None:
        return {}
    box = pictures.evidence.boxes_of_masks(pictures.places[part])  # (n,4)
    points = {"box_centre": (box[:, :2] + box[:, 2:]) / 2, "part_prior": place.expand(len(part), 2)}  # (n,2) each
    found = {}
    for name, at in points.items():
        known = ~at.isnan().any(1)  # (n,)
        if bool(known.any()):
            laid = grids.through(partial(_cell_at, at, size))  # (n,H,W)
            found[name] = Baseline(laid, known)
    return found


def _cell_at(points: Tensor, size: Size, frame: Tensor, cells: Size) -> Tensor:
    """The map (n,H,W) of the cell at each point (n,2)."""
    return at_points(points, frame, cells, size)


def _usual_place(pictures: ProbedPictures, numbers: Tensor) -> Tensor:
    """The mean centre of the evidence of pictures, (2,) as (x, y); NaN where none has any."""
    total, count = torch.zeros(2, dtype=torch.float64), 0
    for part in torch.split(numbers, _AT_ONCE):
        evidence = pictures.evidence_of(part)
        if evidence is None:
            continue
        held = evidence[evidence.flatten(1).any(1)].double()  # (n,H,W)
        pixels = held.sum((1, 2))  # (n,)
        rows, columns = (torch.arange(side, dtype=torch.float64) + 0.5 for side in held.shape[1:])
        total += torch.stack([(held.sum(1) @ columns) / pixels, (held.sum(2) @ rows) / pixels], 1).sum(0)
        count += len(held)
    return (total / count if count else torch.full((2,), torch.nan, dtype=torch.float64)).float()


def _mixed(numbers: Tensor) -> list[Tensor]:
    """The pictures in a fixed random order, in parts of which none is small: donors come from the same part."""
    order = numbers[torch.randperm(len(numbers), generator=torch.Generator().manual_seed(0))]
    parts = max(1, len(order) // _AT_ONCE)
    return [part for part in torch.tensor_split(order, parts) if len(part)]
