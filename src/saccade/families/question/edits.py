"""Edits a model's attention: the rest of the model runs on the edited weights and answers again.

Weights are taken from the unedited pass. "all" gives every look its edited weights. A look alone is edited in two ways:
those after it are computed again from the changed features ("recomputed"), or keep the weights of the unedited pass
("frozen"). Gates are not scaled; a softmax keeps its sum (:meth:`saccade.looks.Look.edit`).

==================  ====================================================================================
``zero_target``     no weight on the target
``zero_random``     no weight on as many cells elsewhere, drawn at random
``zero_heaviest``   no weight on as many cells elsewhere, the heaviest ones
``keep_target``     weight on the target alone
``keep_random``     weight on as many cells elsewhere alone
``move``            the weight on the target goes to the other digit; ``right`` is then that digit's colour
``even``            the mean weight everywhere
``permuted``        cells change places at random
``exchanged``       the weights of another picture
``target_removed``  no edit: the target is taken out of the picture
``target_alone``    no edit: everything but the target is taken out of the picture
==================  ====================================================================================

Axes: B questions, h and w cells.

Moves a model's crop: the rest of the model reads the other window and answers again.

Windows are upright. Those that are moved have the sides of the model's own.

==================  ====================================================================================
``zero_target``     the window lies where nothing of the target is in it
``zero_random``     the window lies elsewhere, and the whole target is still in it
``keep_target``     a window round the target alone, half as large again as it
``keep_random``     a window of that size that holds nothing of the target
``move``            the same round the other digit; ``right`` is then that digit's colour
``even``            the whole picture
``exchanged``       the window of another picture
``target_removed``  no edit: the target is taken out of the picture
``target_alone``    no edit: everything but the target is taken out of the picture
==================  ====================================================================================

An edit that has no such place does not count for its question. Axes: B questions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.render import render
from saccade.families.question.twins import SceneTwins
from saccade.looks import Look
from saccade.metrics.maps import baselines
from saccade.metrics.maps.edits import (
    ALONE,
    REMOVED,
    EditScores,
    beside,
    cells_about,
    cells_on,
    crop_boxes,
    edited_weights,
    grown,
    mask_boxes,
    over,
    round_about,
)
from saccade.metrics.maps.scorer import can_exchange
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import EncodedPictures
from saccade.trace import AttentionTrace

ONE_LOOK = ("zero_target", "even", "permuted", "exchanged")
"""Edits of a look alone."""


def can_edit(model: QueryModel, trace: AttentionTrace) -> bool:
    """Whether every look of the total can be given, and is weights on a grid without steps."""
    looks = trace.looks_of_total
    return bool(looks) and all(
        look.name in model.look_names and look.weights is not None and not look.has_steps and look.full is None
        for look in looks
    )


def edit_scores(model: QueryModel, twins: SceneTwins, trace: AttentionTrace, removed: EncodedPictures) -> EditScores:
    """What becomes of the answers of ``model`` to the questions of ``twins``, of which ``trace`` is the unedited pass.

    Args:
        model: in eval mode; :func:`can_edit` holds.
        twins: the questions, their scenes and twins.
        trace: of the unedited pass.
        removed: what the model saw of the pictures with one digit removed.
    """
    batch, looks = twins.batch, trace.looks_of_total
    seen, size = EncodedPictures(model, twins.images), (twins.masks.shape[-2], twins.masks.shape[-1])
    other = baselines.derangement(batch.scene).to(batch.scene.device) if can_exchange(batch.scene) else None  # (B,)
    own = {look.name: _weights(look) for look in looks}
    on_target, on_other = (twins.masks[twins.scene, slot] for slot in (twins.target, twins.other))  # (B,H,W) each
    possible = torch.ones(len(batch), dtype=torch.bool, device=batch.scene.device)  # (B,)
    edited: dict[str, dict[str, Tensor]] = {}  # the weights (B,h,w) of each look with each edit
    for name, weights in own.items():
        look, grid = trace.look(name), (weights.shape[-2], weights.shape[-1])
        frame = trace.frame_on(look, size).to(weights.device)
        cells = cells_about(on_target, weights, frame)
        onto = cells_on(on_other, frame, grid) & ~cells.target  # (B,h,w)
        edited[name] = edited_weights(look, cells) | {"move": _weights(look.edit(cells.target, onto=onto))}
        if other is not None:
            edited[name]["exchanged"] = weights[other]
        possible &= cells.are_enough

    def answered(attention: dict[str, Tensor]) -> Tensor:
        return seen.ask(batch.query, twins.scene, attention=attention).logits.argmax(-1)  # (B,)

    before = answered(own)
    names = list(own)
    together = {edit: answered({name: edited[name][edit] for name in names}) for edit in edited[names[0]]}
    together |= pixel_answers(model, twins, removed)
    found = {"all": {name: torch.where(possible, ids, -1) for name, ids in together.items()}}
    if len(names) > 1:
        for number, name in enumerate(names):
            earlier = {each: own[each] for each in names[:number]}
            later = {each: own[each] for each in names[number + 1 :]}
            for way, kept in (("recomputed", {}), ("frozen", later)):
                if way == "frozen" and not later:
                    continue  # there is nothing after the last one
                found[f"{name}, later {way}" if later else name] = {
                    edit: answered({**earlier, name: edited[name][edit], **kept})
                    for edit in ONE_LOOK
                    if edit in edited[name]
                }
    truth = {"move": batch.layout.colour.gather(1, twins.other[:, None]).squeeze(1)}
    scores = EditScores()
    scores.add(before, batch.label, batch.scene, found, truths=truth)
    return scores


def pixel_answers(model: QueryModel, twins: SceneTwins, removed: EncodedPictures) -> dict[str, Tensor]:
    """Answers (B,) to pictures that are changed in place of attention: what an edit can reach at most."""
    batch = twins.batch
    alone = replace(
        batch.layout, present=torch.zeros_like(batch.layout.present).scatter(1, batch.object[:, None], True)
    )
    return {
        REMOVED: removed.ask(batch.query, twins.number(twins.target)).logits.argmax(-1),
        ALONE: EncodedPictures(model, as_float(render(alone))).ask(batch.query).logits.argmax(-1),
    }


def _weights(look: Look) -> Tensor:
    return cast(Tensor, look.weights)  # can_edit has been asked


_ROUND, _LEAST = 1.5, 10.0  # a window round a digit: so much larger than it, and so many pixels at least


def can_aim(model: QueryModel, trace: AttentionTrace) -> bool:
    """Whether the model looks by one crop alone, which can be given."""
    looks = trace.looks_of_total
    return len(looks) == 1 and looks[0].kind == "crop" and looks[0].name in model.look_names


def crop_edit_scores(
    model: QueryModel, twins: SceneTwins, trace: AttentionTrace, removed: EncodedPictures
) -> EditScores:
    """What becomes of the answers of ``model``; arguments as in :func:`.scene_edits.edit_scores`."""
    batch, look = twins.batch, trace.looks_of_total[0]
    size = (twins.masks.shape[-2], twins.masks.shape[-1])
    seen = EncodedPictures(model, twins.images)
    own = crop_boxes(trace.frame_on(look, size), look.grid or size)  # (B,4)
    target, other = (mask_boxes(twins.masks[twins.scene, slot]) for slot in (twins.target, twins.other))  # (B,4)
    sides = grown(target, _ROUND, _LEAST)  # (B,2)
    always = torch.ones(len(own), dtype=torch.bool, device=own.device)  # (B,)
    whole = torch.tensor([0.0, 0.0, size[1], size[0]], dtype=torch.float64, device=own.device)
    near = round_about(target, sides, size)
    edits: dict[str, tuple[Tensor, Tensor]] = {
        "zero_target": beside(own, target, size),
        "zero_random": over(own, target, size),
        "keep_target": (near, always),
        "keep_random": beside(near, target, size, seed=1),
        "move": (round_about(other, grown(other, _ROUND, _LEAST), size), always),
        "even": (whole.expand_as(own), always),
    }
    if can_exchange(batch.scene):
        edits["exchanged"] = (own[baselines.derangement(batch.scene).to(own.device)], always)

    def answered(boxes: Tensor) -> Tensor:
        given = look.aim(boxes).as_given()
        return seen.ask(batch.query, twins.scene, attention=given).logits.argmax(-1)  # (B,)

    before = seen.ask(batch.query, twins.scene).logits.argmax(-1)
    found = {name: torch.where(possible, answered(boxes), -1) for name, (boxes, possible) in edits.items()}
    found |= pixel_answers(model, twins, removed)
    truth = {"move": batch.layout.colour.gather(1, twins.other[:, None]).squeeze(1)}
    scores = EditScores()
    scores.add(before, batch.label, batch.scene, {"all": found}, truths=truth)
    return scores
