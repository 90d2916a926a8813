"""Scores of a model's maps on scenes that are rendered again, and of its answers when its attention is edited.

Maps are scored by :mod:`saccade.metrics.maps.twins`, edits by :mod:`saccade.metrics.maps.edits`.

Axes: B questions, N slots, K other colours, A answers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.families.question.scene_data import SceneBatch
from saccade.families.question.scene_edits import can_edit, edit_scores
from saccade.families.question.scene_twins import LEAST, SceneTwins
from saccade.metrics.maps.effects import object_effects
from saccade.metrics.maps.grids import Grids, grids_of
from saccade.metrics.maps.twins import TwinMaps, TwinScores, foreground
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import SeenPictures, distinct
from saccade.trace import AttentionTrace

_ASKS = 500  # answers without maps that are asked for at once


def twin_scores(model: QueryModel, batch: SceneBatch, *, edits: bool = True) -> TwinScores:
    """Every score of the model's maps under intervention, for the questions of a batch.

    Args:
        model: in eval mode.
        batch: the questions; several about one scene follow one another.
        edits: whether its attention is edited too, if it can be given any; some 40 forward passes a question.
    """
    size = (batch.images.shape[-2], batch.images.shape[-1])
    first, scene = distinct(batch.scene)  # (S,), (B,)
    seen = SeenPictures(model, batch.images[first])

    def traced(pictures: SeenPictures, query: Tensor, which: Tensor) -> AttentionTrace:
        return model.wrap(pictures.ask(query, which), size).trace

    raw = seen.ask(batch.query, scene)
    trace = model.wrap(raw, size).trace
    grids = grids_of(trace, size)
    twins = SceneTwins(batch, coarsest_cell(grids))
    target, other = twins.number(twins.target), twins.number(twins.other)  # (B,)
    moved, removed = (seen.changed(each, twins.scene_of_digit) for each in (twins.moved, twins.removed))
    recoloured = seen.changed(twins.recoloured, twins.scene_of_digit.repeat_interleave(twins.ways))
    colour = twins.some_colour(twins.other)  # (B,)
    asked = batch.layout.classes.gather(1, twins.other[:, None]).squeeze(1)  # (B,)
    maps = TwinMaps(
        first=trace.image_map("total"),
        other_question=traced(seen, asked, scene).image_map("total"),
        target_moved=traced(moved, batch.query, target).image_map("total"),
        target_removed=traced(removed, batch.query, target).image_map("total"),
        other_moved=traced(moved, batch.query, other).image_map("total"),
        other_removed=traced(removed, batch.query, other).image_map("total"),
        other_recoloured=traced(recoloured, batch.query, colour).image_map("total"),
    )
    bright = TwinMaps(
        first=foreground(batch.images),
        other_question=foreground(batch.images),
        target_moved=foreground(twins.moved)[target],
        target_removed=foreground(twins.removed)[target],
        other_moved=foreground(twins.moved)[other],
        other_removed=foreground(twins.removed)[other],
        other_recoloured=foreground(twins.recoloured)[colour],
    )
    effects = _effects(model, twins, recoloured, model.probabilities(raw["logits"]))
    scores = TwinScores()
    scores.add(maps, twins.truth(), twins.objects(), effects, batch.scene, bright=bright, grids=grids)
    if edits and can_edit(model, trace):
        scores.edits.join(edit_scores(model, twins, trace, removed))
    return scores


def coarsest_cell(grids: Grids | None) -> int:
    """Pixels from one cell of the coarsest grid to the next, rounded up; :data:`LEAST` of a model without a grid."""
    if grids is None:
        return LEAST
    steps = [frame[..., [0, 1], [0, 1]].abs().max() for frame, _ in grids.grids]
    return max(1, int(torch.stack(steps).max().ceil()))


def _effects(model: QueryModel, twins: SceneTwins, recoloured: SeenPictures, before: Tensor) -> Tensor:
    """The effect (B,N) of each of :meth:`SceneTwins.objects` on the answers, which were ``before`` (B,A)."""
    present = twins.layout.present[twins.scene]  # (B,N)
    question, obj = present.nonzero().unbind(1)  # (Q,), (Q,)
    number = twins.numbers[twins.scene[question], obj]  # (Q,)
    ways = torch.arange(twins.ways, device=obj.device)  # (K,)
    picture = (number[:, None] * twins.ways + ways).flatten()  # (Q·K,)
    query = twins.batch.query[question].repeat_interleave(twins.ways)  # (Q·K,)
    parts = zip(torch.split(query, _ASKS), torch.split(picture, _ASKS))
    logits = torch.cat([recoloured.ask(*part)["logits"] for part in parts])  # (Q·K,A)
    after = before.new_zeros(*present.shape, twins.ways, before.shape[-1])  # (B,N,K,A)
    after[question, obj] = model.probabilities(logits).view(-1, twins.ways, before.shape[-1])
    effects = object_effects(before, after, present)  # (B,N)
    if twins.patch is None:
        return effects
    pictures = (twins.scene[:, None] * twins.ways + ways).flatten()  # (B·K,)
    asked = twins.batch.query.repeat_interleave(twins.ways)  # (B·K,)
    patched = SeenPictures(model, twins.patch_recoloured).ask(asked, pictures)["logits"]
    changed = model.probabilities(patched).view(-1, 1, twins.ways, before.shape[-1])  # (B,1,K,A)
    return torch.cat([effects, object_effects(before, changed, torch.ones_like(present[:, :1]))], 1)  # (B,N+1)
