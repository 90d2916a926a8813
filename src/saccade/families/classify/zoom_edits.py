"""Moves nested crops elsewhere: the scales read other windows, and the model answers again.

Windows keep the sides of the model's own. The evidence is the target.

==================  ====================================================================================
``zero_target``     both windows lie where nothing of the evidence is in them
``zero_random``     both windows lie elsewhere, and all of the evidence is still in them
``keep_target``     both windows have the evidence in their middle
``keep_random``     the same as ``zero_target``, drawn again
``exchanged``       the windows of another picture
``target_removed``  no edit: the evidence is blurred in the picture
==================  ====================================================================================

"all" edits both crops. The first one alone is edited in two ways: the second is proposed again ("recomputed") or stays
where it was ("frozen"). Scale 1 sees the whole picture in any case, so an answer need not change; it is the share
beside the random row that counts. There is no ``edit_sufficiency``: the answer is colour and stripes, and with all but
the evidence blurred the colour is gone, so that no ceiling is known. Axes: B pictures.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.data.pictures.labelled import LabelledBatch
from saccade.families.classify.zoom_scores import crops_of
from saccade.families.classify.zooming import seen
from saccade.geometry import Size
from saccade.metrics.maps import baselines
from saccade.metrics.maps.edits import REMOVED, EditScores, beside, mask_boxes, over, round_about
from saccade.metrics.verdict import changed
from saccade.models.base import Raw
from saccade.models.racnn import CROPS, RacnnModel

EDITED = 100
"""Pictures whose crops are edited; a dozen passes each."""
ONE_LOOK = ("zero_target", "zero_random", "keep_target")
"""Edits of a crop alone."""


@torch.no_grad()
def zoom_edits(model: RacnnModel, raw: Raw, batch: LabelledBatch, images: Tensor, pictures: Tensor) -> EditScores:
    """What becomes of the answers; nothing where no evidence is known or crops are not proposed.

    Args:
        model: in eval mode.
        raw: of the unedited pass.
        batch: labels and evidence.
        images: (B,3,H,W) as the model takes them.
        pictures: (B,) ids.
    """
    scores = EditScores()
    if batch.evidence is None or model.config.crops != "proposed":
        return scores
    rows = batch.evidence.flatten(1).any(1).nonzero().squeeze(1)  # (n,)
    if len(rows) < 2:
        return scores
    images, evidence, label = images[rows], batch.evidence[rows], batch.label[rows]
    size = (images.shape[-2], images.shape[-1])
    looks = {look.name: look for look in model.wrap({name: each[rows] for name, each in raw.items()}, size).trace.looks}
    own = {name: box[rows].double() for name, box in crops_of(model, raw).items()}  # (n,4) each
    target = mask_boxes(evidence)  # (n,4)
    first, second = CROPS
    away, apart = beside(own[first], target, size)
    again, apart_again = beside(own[first], target, size, seed=1)
    moved, covers = over(own[first], target, size)
    inner, covers_too = over(own[second], target, size, within=moved)
    pictures = pictures.to(rows.device)[rows]  # (n,)
    shift = baselines.derangement(pictures).to(images.device)  # (n,)
    always = torch.ones_like(apart)
    edits: dict[str, tuple[dict[str, Tensor], Tensor]] = {
        "zero_target": ({first: away, second: _inside(away, own[second], size)}, apart),
        "zero_random": ({first: moved, second: inner}, covers & covers_too),
        "keep_target": ({name: round_about(target, _sides(own[name]), size) for name in CROPS}, always),
        "keep_random": ({first: again, second: _inside(again, own[second], size)}, apart_again),
        "exchanged": ({name: own[name][shift] for name in CROPS}, always),
    }

    def answered(boxes: dict[str, Tensor]) -> Tensor:
        given = {name: looks[name].aim(box).as_given()[name] for name, box in boxes.items()}
        parts = [slice(at, at + 50) for at in range(0, len(images), 50)]
        found = [
            model.forward_raw(images[part], attention={name: each[part] for name, each in given.items()})["logits"]
            for part in parts
        ]
        return torch.cat(found).argmax(-1)  # (n,)

    found = {"all": {name: torch.where(ok, answered(boxes), -1) for name, (boxes, ok) in edits.items()}}
    ways = {f"{first}, later recomputed": ((first,), {}), f"{first}, later frozen": ((first,), {second: own[second]})}
    for way, (which, kept) in {**ways, second: ((second,), {first: own[first]})}.items():
        found[way] = {
            name: torch.where(ok, answered({**kept, **{each: boxes[each] for each in which}}), -1)
            for name, (boxes, ok) in edits.items()
            if name in ONE_LOOK
        }
    without = changed(images, images, evidence)["evidence_blurred"]
    found["all"][REMOVED] = seen(model, without)["logits"].argmax(-1)
    scores.add(raw["logits"][rows].argmax(-1), label, pictures, found)
    return scores


def _sides(boxes: Tensor) -> Tensor:
    return boxes[:, 2:] - boxes[:, :2]


def _inside(outer: Tensor, inner: Tensor, size: Size) -> Tensor:
    """Boxes (n,4) with the sides of ``inner`` in the middle of ``outer``."""
    return round_about(outer, _sides(inner), size)
