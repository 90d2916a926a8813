"""Scores of a model's maps on scenes that are rendered again, and of its answers when its attention is edited.

Maps are scored by :mod:`saccade.metrics.maps.twins`, edits by :mod:`saccade.metrics.maps.edits`.

Axes: B questions, N slots, K other colours, A answers.

The scenes of a batch of questions with one digit changed, for the causal tests of answers.

Questions about one scene often change it in the same way: they draw the same other digit, or the colour that another
question gave it. Every different picture is drawn once.

Axes: B questions, P pictures.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.drawing import COLOURS
from saccade.data.scenes.render import render
from saccade.families.question.edits import can_aim, can_edit, crop_edit_scores, edit_scores
from saccade.families.question.scenes import SceneBatch
from saccade.families.question.twins import LEAST, SceneTwins, TwinQueries
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.interventions import object_effects
from saccade.metrics.maps.twins import TwinMaps, TwinScores, foreground
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
    effects = effects_on(model, twins, recoloured, model.probabilities(raw.logits))
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
    logits = torch.cat([recoloured.ask(*part).logits for part in parts])  # (Q·K,A)
    after = before.new_zeros(*present.shape, twins.ways, before.shape[-1])  # (B,N,K,A)
    after[question, obj] = model.probabilities(logits).view(-1, twins.ways, before.shape[-1])
    effects = object_effects(before, after, present)  # (B,N)
    if twins.patch is None:
        return effects
    pictures = (twins.scene[:, None] * twins.ways + ways).flatten()  # (B·K,)
    asked = twins.batch.query.repeat_interleave(twins.ways)  # (B·K,)
    patched = EncodedPictures(model, twins.patch_recoloured).ask(asked, pictures).logits
    changed = model.probabilities(patched).view(-1, 1, twins.ways, before.shape[-1])  # (B,1,K,A)
    return torch.cat([effects, object_effects(before, changed, torch.ones_like(present[:, :1]))], 1)  # (B,N+1)


RECOLOURED_TARGET, RECOLOURED_OTHER, REMOVED_OTHER = "recoloured_target", "recoloured_other", "removed_other"
_GONE = len(COLOURS)  # stands for the colour of a digit that is removed


@dataclass(frozen=True)
class ChangedScenes:
    """Pictures, and which of them shows the change of each question."""

    images: Tensor
    """(P,3,H,W) float32 in 0..1."""
    row: Tensor
    """(P,): a question of the batch about the scene that was changed."""
    picture: dict[str, Tensor]
    """The number (B,) of the picture of each question, for each way of changing it."""
    new_label: Tensor
    """(B,) the colour of the digit asked for, where it is recoloured."""


def changed_scenes(batch: SceneBatch, *, target: bool = True) -> ChangedScenes:
    """What :meth:`SceneBatch.recolour_target`, ``recolour_other`` and ``remove_other`` draw, each picture once.

    Args:
        batch: the questions.
        target: whether the digit asked for is recoloured too.
    """
    label = batch.new_target_colour()  # (B,)
    other, colour = batch.other_recoloured()  # (B,) each
    ways = {RECOLOURED_OTHER: (other, colour), REMOVED_OTHER: (other, torch.full_like(colour, _GONE))}
    if target:
        ways = {RECOLOURED_TARGET: (batch.object, label), **ways}
    obj, given = (torch.cat(column) for column in zip(*ways.values()))  # (W·B,) each
    is_gone, scene = given == _GONE, distinct(batch.scene)[1].repeat(len(ways))  # (W·B,) each
    # Pictures without a digit come last, small digits first: what changes alike is encoded together.
    side = batch.layout.side.repeat(len(ways), 1).gather(1, obj[:, None]).squeeze(1)  # (W·B,)
    order = is_gone * (batch.layout.spec.size + 1) + side  # (W·B,)
    place = (order * len(batch) + scene) * batch.layout.present.shape[1] + obj  # (W·B,)
    first, number = distinct(place * (_GONE + 1) + given)  # (P,), (W·B,)
    row, obj, given = first % len(batch), obj[first], given[first]  # (P,) each
    layout = batch.layout[row]
    kept = int((given != _GONE).sum())
    drawn = layout[:kept].recolour(obj[:kept], given[:kept]), layout[kept:].remove(obj[kept:])
    images = torch.cat([as_float(render(each)) for each in drawn])  # (P,3,H,W)
    return ChangedScenes(images, row, dict(zip(ways, torch.split(number, len(batch)))), label)
