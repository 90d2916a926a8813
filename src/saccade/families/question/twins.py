"""Scenes rendered again with one thing changed: scores of maps there, and of answers when attention is edited.

Every digit of a scene is moved, removed and recoloured in each other colour once; all questions about the scene share
these twins. For each question, "other" is the digit of the most similar area that can be moved if the target can. Moves
are at least as long as a cell of the coarsest grid, onto free ground.

Maps are scored by :mod:`saccade.metrics.maps.twins`, edits by :mod:`saccade.metrics.maps.edits`. In an edit, the rest
of the model runs on other weights, or on a crop in another place, and answers again. "all" gives every look its edited
weights. Of a look alone, those after it are computed again ("recomputed"), or keep the weights of the unedited pass
("frozen"). Gates are not scaled; a softmax keeps its sum (:meth:`saccade.looks.Look.edit`).

==================  ==================================================  ==============================================
edit                of weights                                          of a crop
==================  ==================================================  ==============================================
``zero_target``     none on the target                                  it lies where nothing of the target is in it
``zero_random``     none on as many cells elsewhere, drawn at random    elsewhere, the whole target still in it
``zero_heaviest``   none on as many cells elsewhere, the heaviest
``keep_target``     on the target alone                                 round it alone, half as large again
``keep_random``     on as many cells elsewhere alone                    as large, with nothing of the target in it
``move``            that on the target goes to the other digit;         the same round the other digit
                    ``right`` is then that digit's colour
``even``            the mean weight everywhere                          the whole picture
``permuted``        cells change places at random
``exchanged``       those of another picture                            that of another picture
``target_removed``  no edit: the target is taken out of the picture     the same
``target_alone``    no edit: all but the target is taken out            the same
==================  ==================================================  ==============================================

An edit that has no such place does not count for its question.

Axes: B questions, S scenes, N slots, P digits present in all scenes or pictures, K other colours, A answers, h and w
cells.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.backgrounds import Cornered
from saccade.data.scenes.drawing import COLOURS, render
from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.layout import SceneLayout, free_places
from saccade.families.question.scenes import SceneBatch
from saccade.metrics.maps import edits
from saccade.metrics.maps.baselines import Grids, can_exchange, derangement, grids_of
from saccade.metrics.maps.interventions import object_effects
from saccade.metrics.maps.twins import TwinMaps, TwinScores, TwinTruth, alike, foreground
from saccade.models.base import QueryModel
from saccade.tasks.evaluate import EncodedPictures, distinct
from saccade.trace import AttentionTrace

OTHER_COLOURS = len(COLOURS) - 1  # K: number of other colours of a digit
ONE_LOOK = ("zero_target", "even", "permuted", "exchanged")  # Edits of a look alone
LEAST = 10  # Least move in pixels, for a model without a grid
_COLOUR = 201  # the draw of the colour of another digit, on top of those that make a scene
_ROUND, _NARROWEST = 1.5, 10.0  # a window round a digit: so much larger than it, and so many pixels at least
_ASKS = {"cpu": 500}  # answers without maps that are asked for at once
_ASKS_ELSEWHERE = 10_000


class SceneTwins:
    """The scenes of a batch of questions with all their twins, and which belongs to which question.

    Questions about one scene are consecutive; moves have ``least`` pixels at least.
    """

    def __init__(self, batch: SceneBatch, least: int) -> None:
        first, self.scene = distinct(batch.picture)  # (S,), (B,)
        self.batch, self.target = batch, batch.object
        self.layout: SceneLayout = batch.layout[first]  # The unchanged scenes (S)
        self.images = batch.images[first]  # (S,3,H,W)
        self.masks = self.layout.masks()  # (S,N,H,W) bool
        scene, obj = self.layout.present.nonzero().unbind(1)  # (P,), (P,)
        # (S,N): which of the P each digit is; -1 where there is none.
        self.numbers = torch.full_like(self.layout.classes, -1)
        self.numbers[scene, obj] = torch.arange(len(obj), device=obj.device)
        copies = self.layout[scene]  # P scenes, one for each digit
        places = free_places(self.layout, least=least)
        self.is_free = places.found  # (S,N) bool: whether there was a free place; else the digit stays
        x, y = (torch.where(places.found, new, old) for new, old in zip(places, (self.layout.x, self.layout.y)))
        # (P): scenes with one digit moved onto free ground.
        self.moved_scenes = replace(copies.move(obj, x[scene, obj], y[scene, obj]), may_overlap=False)
        self.moved_masks = self.moved_scenes.mask_of(obj)  # (P,H,W) bool: each moved digit
        self.moved, self.removed = drawn(self.moved_scenes), drawn(copies.remove(obj))  # (P,3,H,W) each
        steps = torch.arange(1, len(COLOURS), device=obj.device)  # (K,)
        colours = (copies.colour.gather(1, obj[:, None]) + steps) % len(COLOURS)  # (P,K)
        often = torch.arange(len(obj), device=obj.device).repeat_interleave(OTHER_COLOURS)  # (P·K,)
        # (P·K,3,H,W): digit by digit in each other colour.
        self.recoloured = drawn(copies[often].recolour(obj[often], colours.flatten()))
        self.patch: Tensor | None = None  # (S,H,W) bool: a planted patch, if any, outside digits
        background = self.layout.spec.background
        if isinstance(background, Cornered):
            self.patch = background.mask(self.layout.spec.size, obj.device) & ~self.masks.any(1)
            others = [replace(background, step=background.step + int(step)) for step in steps]
            specs = [replace(self.layout.spec, background=other) for other in others]
            pictures = [drawn(replace(self.layout, spec=spec)) for spec in specs]
            # (S·K,3,H,W): the patch in each other colour, scene by scene.
            self.patch_recoloured = torch.stack(pictures, 1).flatten(0, 1)
        area = self.masks.sum(dim=(-2, -1)).float().clamp(min=1).log()[self.scene]  # (B,N)
        apart = (area - area.gather(1, self.target[:, None])).abs()  # (B,N)
        movable = self.is_free[self.scene]  # (B,N)
        stays = ~movable & movable.gather(1, self.target[:, None])  # (B,N)
        candidates = self.layout.present[self.scene].scatter(1, self.target[:, None], False)  # (B,N)
        # (B,) slot of the digit whose area is most like the target's; it can move if the target can.
        self.other = (apart + 100.0 * stays).masked_fill(~candidates, torch.inf).argmin(1)

    def number(self, obj: Tensor) -> Tensor:
        """(B,): the number among P of the digit in slot ``obj`` (B,) of each question's scene."""
        return self.numbers[self.scene, obj]

    def objects(self) -> Tensor:
        """(B,N,H,W) bool: all possible causes of each answer: the digits, and last a planted patch."""
        masks = self.masks if self.patch is None else torch.cat([self.masks, self.patch[:, None]], 1)
        return masks[self.scene]

    def truth(self) -> TwinTruth:
        """Where things are, for each question."""
        target, other = (self.masks[self.scene, slot] for slot in (self.target, self.other))  # (B,H,W) each
        return TwinTruth(
            target=target,
            other=other,
            target_new=self.moved_masks[self.number(self.target)],
            other_new=self.moved_masks[self.number(self.other)],
            has_moved=self.is_free[self.scene, self.target] & self.is_free[self.scene, self.other],
            is_alike=alike(target, other),
        )


def drawn(layout: SceneLayout) -> Tensor:
    """The pictures (P,3,H,W) of scenes, in 0..1."""
    return as_float(render(layout))


def twin_scores(model: QueryModel, batch: SceneBatch, *, with_edits: bool = True) -> TwinScores:
    """All scores of the model's maps under intervention for a batch of questions, as :class:`SceneTwins` takes them.

    ``with_edits``: whether attention is edited too, some 40 forward passes a question.
    """
    size = (batch.images.shape[-2], batch.images.shape[-1])
    first, scene = distinct(batch.picture)  # (S,), (B,)
    encoded = EncodedPictures(model, batch.images[first])
    raw = encoded.ask(batch.query, scene)
    trace = model.wrap(raw, size).trace
    grids = grids_of(trace, size)
    twins = SceneTwins(batch, coarsest_cell(grids))
    changed = (twins.moved, twins.removed, twins.recoloured)
    moved, removed, recoloured = (EncodedPictures(model, images) for images in changed)
    query, target, other = batch.query, twins.number(twins.target), twins.number(twins.other)  # (B,) each
    other_query = batch.layout.classes.gather(1, twins.other[:, None]).squeeze(1)  # (B,)
    colour = uniform_below(hash_u32(batch.layout.seed, batch.picture, twins.other, _COLOUR), OTHER_COLOURS)  # (B,)
    questions = {
        "other_question": (encoded, scene, other_query),
        "target_moved": (moved, target, query),
        "target_removed": (removed, target, query),
        "other_moved": (moved, other, query),
        "other_removed": (removed, other, query),
        "other_recoloured": (recoloured, other * OTHER_COLOURS + colour, query),
    }
    maps = {"first": trace.image_map("total")}  # (B,H,W) each
    bright = {"first": foreground(batch.images)}
    for name, (pictures, which, question) in questions.items():
        maps[name] = model.wrap(pictures.ask(question, which), size).trace.image_map("total")
        bright[name] = foreground(pictures.images[which])
    effects = effects_on(model, twins, recoloured, model.probabilities(raw.logits))
    scores, places = TwinScores(), (twins.truth(), twins.objects())
    scores.add(TwinMaps(**maps), *places, effects, batch.picture, bright=TwinMaps(**bright), grids=grids)
    if with_edits:
        scores.edits.join(edit_scores(twins, trace, encoded, removed))
    return scores


def coarsest_cell(grids: Grids | None) -> int:
    """Pixel step of the coarsest grid, rounded up; :data:`LEAST` without a grid."""
    if grids is None:
        return LEAST
    steps = [frame[..., [0, 1], [0, 1]].abs().max() for frame, _ in grids.grids]
    return max(1, int(torch.stack(steps).max().ceil()))


def effects_on(model: QueryModel, twins: SceneTwins, recoloured: EncodedPictures, before: Tensor) -> Tensor:
    """The effect (B,N) of :meth:`SceneTwins.objects` on the answers, ``before`` (B,A)."""
    present = twins.layout.present[twins.scene]  # (B,N)
    question, obj = present.nonzero().unbind(1)  # (Q,), (Q,)
    number = twins.numbers[twins.scene[question], obj]  # (Q,)
    offsets = torch.arange(OTHER_COLOURS, device=obj.device)  # (K,)
    picture = (number[:, None] * OTHER_COLOURS + offsets).flatten()  # (Q·K,)
    query = twins.batch.query[question].repeat_interleave(OTHER_COLOURS)  # (Q·K,)
    at_once = _ASKS.get(query.device.type, _ASKS_ELSEWHERE)
    parts = zip(torch.split(query, at_once), torch.split(picture, at_once))
    logits = torch.cat([recoloured.ask(*part).logits for part in parts])  # (Q·K,A)
    after = before.new_zeros(*present.shape, OTHER_COLOURS, before.shape[-1])  # (B,N,K,A)
    after[question, obj] = model.probabilities(logits).view(-1, OTHER_COLOURS, before.shape[-1])
    effects = object_effects(before, after, present)  # (B,N)
    if twins.patch is None:
        return effects
    pictures = (twins.scene[:, None] * OTHER_COLOURS + offsets).flatten()  # (B·K,)
    queries = twins.batch.query.repeat_interleave(OTHER_COLOURS)  # (B·K,)
    patched = EncodedPictures(model, twins.patch_recoloured).ask(queries, pictures).logits
    changed = model.probabilities(patched).view(-1, 1, OTHER_COLOURS, before.shape[-1])  # (B,1,K,A)
    return torch.cat([effects, object_effects(before, changed, torch.ones_like(present[:, :1]))], 1)  # (B,N+1)


Answers = dict[str, dict[str, Tensor]]  # By edited looks, then by edit: ids (B,), −1 if not possible


def edit_scores(
    twins: SceneTwins, trace: AttentionTrace, encoded: EncodedPictures, removed: EncodedPictures
) -> edits.EditScores:
    """Answers on edited attention; empty for a model whose total cannot be given.

    ``trace`` is that of the unedited pass, ``encoded`` are the scenes, ``removed`` the same with one digit removed.
    """
    scores, batch = edits.EditScores(), twins.batch
    looks, names = trace.looks_of_total, encoded.model.look_names
    target = torch.zeros_like(batch.layout.present).scatter(1, batch.object[:, None], True)
    if len(looks) == 1 and looks[0].kind == "crop" and looks[0].name in names:
        run_edits = _windows
    elif looks and all(
        look.name in names and look.weights is not None and not look.has_steps and look.full is None for look in looks
    ):
        run_edits = _weights
    else:
        return scores
    alone = EncodedPictures(encoded.model, drawn(replace(batch.layout, present=target)))
    before, answers, possible = run_edits(twins, trace, encoded)
    answers["all"] |= {  # pictures that are changed in place of attention: what an edit can reach at most
        edits.REMOVED: removed.ask(batch.query, twins.number(twins.target)).logits.argmax(-1),
        edits.ALONE: alone.ask(batch.query).logits.argmax(-1),
    }
    answers["all"] = {name: torch.where(possible, ids, -1) for name, ids in answers["all"].items()}
    truth = {"move": batch.layout.colour.gather(1, twins.other[:, None]).squeeze(1)}
    scores.add(before, batch.label, batch.picture, answers, truths=truth)
    return scores


def _weights(twins: SceneTwins, trace: AttentionTrace, encoded: EncodedPictures) -> tuple[Tensor, Answers, Tensor]:
    """Answers (B,) on the model's weights and on edited ones, and where these are possible (B,)."""
    batch, size = twins.batch, (twins.masks.shape[-2], twins.masks.shape[-1])
    exchanged = derangement(batch.picture).to(batch.picture.device) if can_exchange(batch.picture) else None  # (B,)
    on_target, on_other = (twins.masks[twins.scene, slot] for slot in (twins.target, twins.other))  # (B,H,W) each
    possible = torch.ones(len(batch), dtype=torch.bool, device=batch.picture.device)  # (B,)
    originals: dict[str, Tensor] = {}  # the weights (B,h,w) of each look
    edited: dict[str, dict[str, Tensor]] = {}  # the same with each edit
    for look in trace.looks_of_total:
        originals[look.name] = weights = torch.as_tensor(look.weights)
        frame = trace.frame_on(look, size).to(weights.device)
        cells = edits.cells_about(on_target, weights, frame)
        onto = edits.cells_on(on_other, frame, (weights.shape[-2], weights.shape[-1])) & ~cells.target  # (B,h,w)
        moved = torch.as_tensor(look.edit(cells.target, onto=onto).weights)
        edited[look.name] = edits.edited_weights(look, cells) | {"move": moved}
        if exchanged is not None:
            edited[look.name]["exchanged"] = weights[exchanged]
        possible &= cells.are_enough

    def answered(attention: dict[str, Tensor]) -> Tensor:
        return encoded.ask(batch.query, twins.scene, attention=attention).logits.argmax(-1)  # (B,)

    before, names = answered(originals), list(originals)
    answers = {"all": {edit: answered({name: edited[name][edit] for name in names}) for edit in edited[names[0]]}}
    for title, name, fixed in edits.one_by_one(originals):
        some = [edit for edit in ONE_LOOK if edit in edited[name]]
        answers[title] = {edit: answered({**fixed, name: edited[name][edit]}) for edit in some}
    return before, answers, possible


def _windows(twins: SceneTwins, trace: AttentionTrace, encoded: EncodedPictures) -> tuple[Tensor, Answers, Tensor]:
    """Answers (B,) to the model's own crop, and to crops in other places."""
    batch, look, size = twins.batch, trace.looks_of_total[0], (twins.masks.shape[-2], twins.masks.shape[-1])
    crops = edits.crop_boxes(trace.frame_on(look, size), look.grid or size)  # (B,4)
    target, other = (edits.mask_boxes(twins.masks[twins.scene, slot]) for slot in (twins.target, twins.other))  # (B,4)
    sides = edits.grown(target, _ROUND, _NARROWEST)  # (B,2)
    always = torch.ones(len(crops), dtype=torch.bool, device=crops.device)  # (B,)
    whole = torch.tensor([0.0, 0.0, size[1], size[0]], dtype=torch.float64, device=crops.device)
    near = edits.round_about(target, sides, size)
    places: dict[str, tuple[Tensor, Tensor]] = {
        "zero_target": edits.beside(crops, target, size),
        "zero_random": edits.over(crops, target, size),
        "keep_target": (near, always),
        "keep_random": edits.beside(near, target, size, seed=1),
        "move": (edits.round_about(other, edits.grown(other, _ROUND, _NARROWEST), size), always),
        "even": (whole.expand_as(crops), always),
    }
    if can_exchange(batch.picture):
        places["exchanged"] = (crops[derangement(batch.picture).to(crops.device)], always)

    def answered(boxes: Tensor) -> Tensor:
        attention = look.aim(boxes).as_given()
        return encoded.ask(batch.query, twins.scene, attention=attention).logits.argmax(-1)  # (B,)

    before = encoded.ask(batch.query, twins.scene).logits.argmax(-1)
    answers = {name: torch.where(possible, answered(boxes), -1) for name, (boxes, possible) in places.items()}
    return before, {"all": answers}, always
