"""Scores of where a model zooms: the regions themselves, moved regions, and pictures drawn again.

``scale1_accuracy`` … are those of each scale by itself; ``accuracy`` is that of all together. Each crop has
``scale2_side``, its side as a share of the picture's, and where the evidence is known the scores of crops in
:mod:`saccade.metrics.maps.edits`, beside those of crops of the same side in the centre and anywhere.

Edits move both nested crops, with the sides of the model's own, and the model answers again:

==================  ====================================================================================
``zero_target``     nothing of the evidence is in them; ``keep_random`` is the same, drawn again
``zero_random``     they lie elsewhere, and all of the evidence is still in them
``keep_target``     they have the evidence in their middle
``exchanged``       the crops of another picture
``target_removed``  no edit: the evidence is blurred in the picture
==================  ====================================================================================

The first crop alone is edited in two ways: the second is proposed again ("recomputed") or stays ("frozen"). Scale 1
sees the whole picture, so an answer need not change: compare with the random row. There is no ``edit_sufficiency``:
blurring all but the evidence removes the colour, half of the answer. Axes: B pictures.

Causal scores, on pictures of ``details`` that are drawn again with one thing changed:

=========================  ===================================================================================
``moved_follow``           the bearer is elsewhere: the finest crop now covers it (half or more)
``moved_hold``             … and the answer is the same
``rewoven_follow``         the mark has other stripes: the answer is now their class
``rewoven_hold``           … and the finest crop lies where it was (overlap of half or more)
``surrounded_hold``        everything but the bearer is another: the answer is the same
``surrounded_crop_hold``   … and the finest crop lies where it was
=========================  ===================================================================================

Only pictures that are answered correctly, with a crop that covers the evidence, count; others are NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard, cast

import torch
from torch import Tensor

from saccade import geometry
from saccade.attention.zoom import theta_box
from saccade.data.details import moved, rewoven, sample_details, surrounded
from saccade.data.pictures.labelled import DrawnSplit, LabelledBatch
from saccade.data.pictures.reading import as_float
from saccade.errors import DataError
from saccade.families.classify.data import Details, drawn
from saccade.metrics.maps import baselines, edits
from saccade.metrics.verdict import changed
from saccade.models.base import ImageOnlyModel
from saccade.models.racnn import CROPS, SCALES, RacnnModel, region_round
from saccade.tasks.evaluate import Measurements, at_once, in_parts, thread_count
from saccade.tasks.label_task import LabelScoring
from saccade.trace import LabelOutput, joined


def needs_evidence(model: object) -> TypeGuard[RacnnModel]:
    """Whether the crops of ``model`` come from the data."""
    return isinstance(model, RacnnModel) and model.config.crops == "given"


def crops_round(model: RacnnModel, evidence: Tensor | None) -> dict[str, Tensor]:
    """The frames of both crops around the evidence (B,H,W), as ``attention``; the whole picture without evidence."""
    if evidence is None:
        raise DataError("crops 'given' lie round the evidence, and this data has no evidence: add a column box or mask")
    config = model.config
    height, width = config.input_size
    boxes = edits.mask_boxes(evidence)  # (B,4)
    whole = torch.tensor([0.0, 0.0, width, height], dtype=boxes.dtype, device=boxes.device)
    return region_round(torch.where(boxes.isnan(), whole, boxes), config.input_size, config.side, config.crop)


def run_model(model: ImageOnlyModel, images: Tensor, evidence: Tensor | None = None) -> LabelOutput:
    """``forward_raw`` of all pictures, a few at a time, with crops around the evidence if the model needs them."""
    if needs_evidence(model):
        return cropped(model, images, crops_round(model, evidence), at_once(images))
    return cast(LabelOutput, in_parts(model, images, threads=thread_count(images.device)))


def cropped(model: RacnnModel, images: Tensor, crops: Mapping[str, Tensor], together: int) -> LabelOutput:
    """``forward_raw`` of pictures (B,3,H,W) with these frames (B,2,3) of crops, ``together`` at a time."""
    parts = [slice(at, at + together) for at in range(0, len(images), together)]
    return joined(model.forward_raw(images[part], attention={n: f[part] for n, f in crops.items()}) for part in parts)


def scale_values(raw: LabelOutput, label: Tensor) -> dict[str, Tensor]:
    """Whether each scale alone is right (B,)."""
    right = raw.scale_logits.argmax(-1) == label[:, None]  # (B,S)
    return {f"{name}_accuracy": right[:, number] for number, name in enumerate(SCALES)}


def crops_of(model: RacnnModel, raw: LabelOutput) -> dict[str, Tensor]:
    """The boxes (B,4) xyxy of the crops in pixels of the network input, by scale."""
    config = model.config
    frames = {n: geometry.theta_to_frame(raw.acts[n].theta.double(), config.crop, config.input_size) for n in CROPS}
    return {name: edits.crop_boxes(frame, config.crop) for name, frame in frames.items()}


def sides_of(raw: LabelOutput, name: str) -> Tensor:
    """The side (B,) of a crop as a share of the picture's."""
    return 2 * theta_box(raw.acts[name].theta)[:, 2]


class ClassifyScoring(LabelScoring):
    """Measures a classifier; for a zooming model also its scales and crops."""

    def run_model(self, images: Tensor, evidence: Tensor | None) -> LabelOutput:
        """As for every model, with crops around the evidence if the data gives them."""
        return run_model(self.model, images, evidence)

    def measure_further(
        self, measured: Measurements, raw: LabelOutput, batch: LabelledBatch, numbers: Tensor, before: int
    ) -> None:
        """Scales and crops, pictures drawn again, and of the first pictures moved crops."""
        model = self.model
        if not isinstance(model, RacnnModel):
            return
        measured.answers.add_values(scale_values(raw, batch.label))
        measured.columns.append(act_picture=numbers)
        for name, crops in crops_of(model, raw).items():
            measured.acts.add_values({f"{name}_side": sides_of(raw, name)})
            if batch.evidence is not None:
                centre = edits.centred(crops, model.config.input_size)
                measured.acts.add_values(_named(name, edits.crop_scores(crops, batch.evidence)))
                measured.rivals.add_values("centred_crop", _named(name, edits.crop_scores(centre, batch.evidence)))
                measured.rivals.add_values("crop_anywhere", _named(name, edits.anywhere_scores(crops, batch.evidence)))
        if (again := drawn_again(self.data, numbers)) is not None:
            measured.causal.add_values(causal_values(model, raw, batch, again))
        if before < EDITED:
            measured.edits.join(zoom_edits(model, raw, batch, numbers))


def _named(name: str, scores: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{name}_{score}": values for score, values in scores.items()}


EDITED = 100  # Pictures whose crops are edited; a dozen passes each
ONE_LOOK = ("zero_target", "zero_random", "keep_target")  # Edits of a crop alone


@torch.no_grad()
def zoom_edits(model: RacnnModel, raw: LabelOutput, batch: LabelledBatch, pictures: Tensor) -> edits.EditScores:
    """Answers with moved crops (``raw`` is the unedited pass); empty without evidence or proposed crops."""
    scores = edits.EditScores()
    if batch.evidence is None or model.config.crops != "proposed":
        return scores
    rows = batch.evidence.flatten(1).any(1).nonzero().squeeze(1)  # (n,)
    if len(rows) < 2:
        return scores
    images, evidence, label = batch.images[rows], batch.evidence[rows], batch.label[rows]
    size = (images.shape[-2], images.shape[-1])
    looks = {look.name: look for look in model.wrap(raw[rows], size).trace.looks}
    crops = {name: box[rows].double() for name, box in crops_of(model, raw).items()}  # (n,4) each
    target = edits.mask_boxes(evidence)  # (n,4)
    first, second = CROPS
    away, apart = edits.beside(crops[first], target, size)
    again, apart_again = edits.beside(crops[first], target, size, seed=1)
    moved, covers = edits.over(crops[first], target, size)
    inner, covers_too = edits.over(crops[second], target, size, within=moved)
    pictures = pictures.to(rows.device)[rows]  # (n,)
    shift = baselines.derangement(pictures).to(images.device)  # (n,)
    always = torch.ones_like(apart)

    def inside(outer: Tensor, inner: Tensor) -> Tensor:
        """Boxes (n,4) with the sides of ``inner`` in the middle of ``outer``."""
        return edits.round_about(outer, inner[:, 2:] - inner[:, :2], size)

    places: dict[str, tuple[dict[str, Tensor], Tensor]] = {
        "zero_target": ({first: away, second: inside(away, crops[second])}, apart),
        "zero_random": ({first: moved, second: inner}, covers & covers_too),
        "keep_target": ({name: inside(target, crops[name]) for name in CROPS}, always),
        "keep_random": ({first: again, second: inside(again, crops[second])}, apart_again),
        "exchanged": ({name: crops[name][shift] for name in CROPS}, always),
    }

    def answered(boxes: dict[str, Tensor]) -> Tensor:
        frames = {name: looks[name].aim(box).as_given()[name] for name, box in boxes.items()}
        return cropped(model, images, frames, 50).logits.argmax(-1)  # (n,)

    answers = {"all": {name: torch.where(ok, answered(boxes), -1) for name, (boxes, ok) in places.items()}}
    for title, look, fixed in edits.one_by_one(crops):
        for name in ONE_LOOK:
            boxes, ok = places[name]
            answers.setdefault(title, {})[name] = torch.where(ok, answered({**fixed, look: boxes[look]}), -1)
    without = changed(images, images, evidence)["evidence_blurred"]
    answers["all"][edits.REMOVED] = run_model(model, without).logits.argmax(-1)
    scores.add(raw.logits[rows].argmax(-1), label, pictures, answers)
    return scores


HALF = 0.5


def drawn_again(data: object, numbers: Tensor) -> dict[str, LabelledBatch] | None:
    """The pictures ``numbers`` (B,) with one thing changed, by name; None if they are not drawn."""
    if not isinstance(data, DrawnSplit) or not isinstance(data.pictures, Details):
        return None
    layout = sample_details(data.stream, numbers.to(data.device))
    changes = {"moved": moved, "rewoven": rewoven, "surrounded": surrounded}
    return {name: drawn(change(layout)) for name, change in changes.items()}


def causal_values(
    model: RacnnModel, raw: LabelOutput, batch: LabelledBatch, again: Mapping[str, LabelledBatch]
) -> dict[str, Tensor]:
    """Causal scores (B,) of a batch, its outputs ``raw``, and the same pictures drawn ``again``."""
    if batch.evidence is None:
        return {}
    before = crops_of(model, raw)[CROPS[-1]]  # (B,4)
    answer = raw.logits.argmax(-1)  # (B,)
    counts = (answer == batch.label) & (edits.covers_evidence(before, batch.evidence) >= HALF)  # (B,)
    scores: dict[str, Tensor] = {}
    for name, other in again.items():
        then = run_model(model, as_float(other.images), other.evidence)
        crop, new_answer = crops_of(model, then)[CROPS[-1]], then.logits.argmax(-1)
        stayed = edits.on_boxes(before, crop)["overlap"] >= HALF
        if name == "moved" and other.evidence is not None:
            scores["moved_follow"] = edits.covers_evidence(crop, other.evidence) >= HALF
            scores["moved_hold"] = new_answer == answer
        elif name == "rewoven":
            scores["rewoven_follow"] = new_answer == other.label
            scores["rewoven_hold"] = stayed
        else:
            scores["surrounded_hold"] = new_answer == answer
            scores["surrounded_crop_hold"] = stayed
    return {name: torch.where(counts, value.double(), torch.nan) for name, value in scores.items()}
