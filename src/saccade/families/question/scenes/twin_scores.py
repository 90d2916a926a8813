"""Scores of a model's maps on scenes that are rendered again, and of its answers when its attention is edited.

Maps are scored by :mod:`saccade.metrics.maps.interventions`, edits by :mod:`saccade.metrics.maps.edits`.

Axes: B questions, N slots, K other colours, A answers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.families.question.crop_edits import can_aim, crop_edit_scores
from saccade.families.question.scenes.data import SceneBatch
from saccade.families.question.scenes.edits import can_edit, edit_scores
from saccade.families.question.scenes.twins import LEAST, SceneTwins, TwinQueries
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.interventions import TwinMaps, TwinScores, foreground, object_effects
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import EncodedPictures, distinct

_ASKS = {"cpu": 500}  # answers without maps that are asked for at once
_ASKS_ELSEWHERE = 10_000
_AT_ONCE = {"cpu": 25}  # what a model has seen of all their twins takes some 200 MB
_AT_ONCE_ELSEWHERE = 250


def twins_at_once(device: torch.device) -> int:
    """How many questions are scored together with all their twins; a GPU starves on few."""
    return _AT_ONCE.get(device.type, _AT_ONCE_ELSEWHERE)


def twin_scores(model: QueryModel, batch: SceneBatch, *, edits: bool = True) -> TwinScores:
    """Every score of the model's maps under intervention, for the questions of a batch.

    Args:
        model: in eval mode.
        batch: the questions; several about one scene follow one another.
        edits: whether its attention is edited too, if it can be given any; some 40 forward passes a question.
    """
    size = (batch.images.shape[-2], batch.images.shape[-1])
    first, scene = distinct(batch.scene)  # (S,), (B,)
    seen = EncodedPictures(model, batch.images[first])
    raw = seen.ask(batch.query, scene)
    trace = model.wrap(raw, size).trace
    grids = grids_of(trace, size)
    twins = SceneTwins(batch, coarsest_cell(grids))
    moved, removed = (seen.changed(each, twins.scene_of_digit) for each in (twins.moved, twins.removed))
    recoloured = seen.changed(twins.recoloured, twins.scene_of_digit.repeat_interleave(twins.ways))
    by_kind = {"images": seen, "moved": moved, "removed": removed, "recoloured": recoloured}

    def own(asked: TwinQueries) -> Tensor:
        made = model.wrap(by_kind[asked.pictures].ask(asked.query, asked.which), size)
        return made.trace.image_map("total")  # (B,H,W)

    first_map = trace.image_map("total")
    asked = twins.asked()
    maps = TwinMaps(**{name: first_map if name == "first" else own(each) for name, each in asked.items()})
    bright = TwinMaps(**{name: foreground(twins.pictures(each)) for name, each in asked.items()})
    effects = effects_on(model, twins, recoloured, model.probabilities(raw["logits"]))
    scores = TwinScores()
    scores.add(maps, twins.truth(), twins.objects(), effects, batch.scene, bright=bright, grids=grids)
    if edits and can_edit(model, trace):
        scores.edits.join(edit_scores(model, twins, trace, removed))
    elif edits and can_aim(model, trace):
        scores.edits.join(crop_edit_scores(model, twins, trace, removed))
    return scores


def coarsest_cell(grids: Grids | None) -> int:
    """Pixels from one cell of the coarsest grid to the next, rounded up; :data:`LEAST` of a model without a grid."""
    if grids is None:
        return LEAST
    steps = [frame[..., [0, 1], [0, 1]].abs().max() for frame, _ in grids.grids]
    return max(1, int(torch.stack(steps).max().ceil()))


def effects_on(model: QueryModel, twins: SceneTwins, recoloured: EncodedPictures, before: Tensor) -> Tensor:
    """The effect (B,N) of each of :meth:`SceneTwins.objects` on the answers, which were ``before`` (B,A)."""
    present = twins.layout.present[twins.scene]  # (B,N)
    question, obj = present.nonzero().unbind(1)  # (Q,), (Q,)
    number = twins.numbers[twins.scene[question], obj]  # (Q,)
    ways = torch.arange(twins.ways, device=obj.device)  # (K,)
    picture = (number[:, None] * twins.ways + ways).flatten()  # (Q·K,)
    query = twins.batch.query[question].repeat_interleave(twins.ways)  # (Q·K,)
    at_once = _ASKS.get(query.device.type, _ASKS_ELSEWHERE)
    parts = zip(torch.split(query, at_once), torch.split(picture, at_once))
    logits = torch.cat([recoloured.ask(*part)["logits"] for part in parts])  # (Q·K,A)
    after = before.new_zeros(*present.shape, twins.ways, before.shape[-1])  # (B,N,K,A)
    after[question, obj] = model.probabilities(logits).view(-1, twins.ways, before.shape[-1])
    effects = object_effects(before, after, present)  # (B,N)
    if twins.patch is None:
        return effects
    pictures = (twins.scene[:, None] * twins.ways + ways).flatten()  # (B·K,)
    asked = twins.batch.query.repeat_interleave(twins.ways)  # (B·K,)
    patched = EncodedPictures(model, twins.patch_recoloured).ask(asked, pictures)["logits"]
    changed = model.probabilities(patched).view(-1, 1, twins.ways, before.shape[-1])  # (B,1,K,A)
    return torch.cat([effects, object_effects(before, changed, torch.ones_like(present[:, :1]))], 1)  # (B,N+1)
