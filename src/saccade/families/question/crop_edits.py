"""Moves a model's crop: the rest of the model reads the other window and answers again.

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

import torch
from torch import Tensor

from saccade.families.question.scenes.edits import pixel_answers
from saccade.families.question.scenes.twins import SceneTwins
from saccade.metrics.maps import baselines
from saccade.metrics.maps.edits import EditScores, beside, crop_boxes, grown, mask_boxes, over, round_about
from saccade.metrics.maps.scorer import can_exchange
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import EncodedPictures
from saccade.trace import AttentionTrace

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
        return seen.ask(batch.query, twins.scene, attention=given)["logits"].argmax(-1)  # (B,)

    before = seen.ask(batch.query, twins.scene)["logits"].argmax(-1)
    found = {name: torch.where(possible, answered(boxes), -1) for name, (boxes, possible) in edits.items()}
    found |= pixel_answers(model, twins, removed)
    truth = {"move": batch.layout.colour.gather(1, twins.other[:, None]).squeeze(1)}
    scores = EditScores()
    scores.add(before, batch.label, batch.scene, {"all": found}, truths=truth)
    return scores
