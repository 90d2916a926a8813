"""Scenes rendered again with one thing changed, and what a model looks at and answers then.

Every digit of a scene is moved, removed and recoloured in each other colour once; all questions about the scene share
these twins. For each question, "other" is the digit whose area is most like that of the digit asked for, and which can
be moved if that one can. Moves are at least as long as a cell of the coarsest grid, onto free ground.

The maps are scored by :mod:`saccade.metrics.maps.twins`.

Axes: B questions, S scenes, N slots, P digits present in all scenes, K other colours.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.free_ground import FreePlaces, free_places
from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.layout import SceneLayout
from saccade.data.scenes.palette import COLOURS
from saccade.data.scenes.render import render
from saccade.errors import DataError
from saccade.families.question.scene_data import SceneBatch
from saccade.metrics.maps.effects import object_effects
from saccade.metrics.maps.grids import Grids, grids_of
from saccade.metrics.maps.twins import TwinMaps, TwinScores, TwinTruth, foreground
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import SeenPictures, distinct
from saccade.trace import AttentionTrace

ALIKE = 2.0
"""Areas are alike if neither is more than this many times the other."""
LEAST = 10
"""Pixels that a digit moves at least, of a model without a grid."""
_ASKS = 500  # answers without maps that are asked for at once
_COLOUR = 201  # the draw of the colour of another digit, on top of those that make a scene


class SceneTwins:
    """The scenes of a batch of questions with all their twins, and which of them belongs to which question.

    Args:
        batch: the questions; several about one scene follow one another.
        least: pixels that a digit moves at least.
    """

    def __init__(self, batch: SceneBatch, least: int) -> None:
        first, self.scene = distinct(batch.scene)  # (S,), (B,)
        self.batch = batch
        self.layout: SceneLayout = batch.layout[first]
        """The unchanged scenes (S)."""
        self.images = batch.images[first]
        """(S,3,H,W)."""
        self.masks = self.layout.masks()
        """(S,N,H,W) bool."""
        scene, obj = self.layout.present.nonzero().unbind(1)  # (P,), (P,)
        self.numbers = torch.full_like(self.layout.classes, -1)
        """(S,N): which of the P each digit is; -1 where there is none."""
        self.numbers[scene, obj] = torch.arange(len(obj), device=obj.device)
        each = self.layout[scene]  # P scenes, one for each digit
        self.places: FreePlaces = free_places(each, obj, least)
        moved = replace(each.move(obj, self.places.x, self.places.y), may_overlap=False)  # the ground is free
        self.moved_masks = moved.mask_of(obj)
        """(P,H,W) bool: each digit where it was moved to."""
        self.moved, self.removed = _drawn(moved), _drawn(each.remove(obj))
        """(P,3,H,W) each."""
        steps = torch.arange(1, len(COLOURS), device=obj.device)  # (K,)
        colours = (each.colour.gather(1, obj[:, None]) + steps) % len(COLOURS)  # (P,K)
        often = torch.arange(len(obj), device=obj.device).repeat_interleave(len(steps))  # (P·K,)
        self.recoloured = _drawn(each[often].recolour(obj[often], colours.flatten()))
        """(P·K,3,H,W): digit by digit in each other colour."""
        self.target = batch.object
        """(B,) slot of the digit asked for."""
        self.other = self._likest()
        """(B,) slot of another one."""

    @property
    def ways(self) -> int:
        """K: colours that a digit does not have."""
        return len(COLOURS) - 1

    def number(self, obj: Tensor) -> Tensor:
        """(B,): which of the P digits the slot ``obj`` (B,) of each question's scene is."""
        return self.numbers[self.scene, obj]

    def some_colour(self, obj: Tensor) -> Tensor:
        """(B,): which of the pictures ``recoloured`` has slot ``obj`` (B,) in a colour that the scene's hash picks."""
        bits = hash_u32(self.layout.seed, self.batch.scene, obj, _COLOUR)
        return self.number(obj) * self.ways + uniform_below(bits, self.ways)

    def truth(self) -> TwinTruth:
        """Where things are, for each question."""
        target, other = self.number(self.target), self.number(self.other)  # (B,)
        masks = [self.masks[self.scene, each] for each in (self.target, self.other)]  # (B,H,W) each
        area = [mask.sum(dim=(-2, -1)) for mask in masks]  # (B,) each
        return TwinTruth(
            target=masks[0],
            other=masks[1],
            target_new=self.moved_masks[target],
            other_new=self.moved_masks[other],
            has_moved=self.places.found[target] & self.places.found[other],
            is_alike=torch.maximum(area[0], area[1]) <= ALIKE * torch.minimum(area[0], area[1]),
        )

    def _likest(self) -> Tensor:
        """(B,) the slot of the digit whose area is most like that of the target; of those that move, if it moves."""
        area = self.masks.sum(dim=(-2, -1)).float().clamp(min=1).log()[self.scene]  # (B,N)
        apart = (area - area.gather(1, self.target[:, None])).abs()  # (B,N)
        movable = torch.zeros_like(self.layout.present)
        movable[self.layout.present] = self.places.found
        stays = ~movable[self.scene] & movable[self.scene].gather(1, self.target[:, None])  # (B,N)
        others = self.layout.present[self.scene].scatter(1, self.target[:, None], False)  # (B,N)
        if not bool(others.any(1).all()):
            raise DataError("a scene holds no other digit to change")
        return (apart + 100.0 * stays).masked_fill(~others, torch.inf).argmin(1)


def twin_scores(model: QueryModel, batch: SceneBatch) -> TwinScores:
    """Every score of the model's maps under intervention, for the questions of a batch."""
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
    moved, removed = SeenPictures(model, twins.moved), SeenPictures(model, twins.removed)
    recoloured, colour = SeenPictures(model, twins.recoloured), twins.some_colour(twins.other)
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
    scores.add(maps, twins.truth(), twins.masks[scene], effects, batch.scene, bright=bright, grids=grids)
    return scores


def coarsest_cell(grids: Grids | None) -> int:
    """Pixels from one cell of the coarsest grid to the next, rounded up; :data:`LEAST` of a model without a grid."""
    if grids is None:
        return LEAST
    steps = [frame[..., [0, 1], [0, 1]].abs().max() for frame, _ in grids.grids]
    return max(1, int(torch.stack(steps).max().ceil()))


def _effects(model: QueryModel, twins: SceneTwins, recoloured: SeenPictures, before: Tensor) -> Tensor:
    """The effect (B,N) of each digit on the answer, whose probabilities ``before`` are (B,A)."""
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
    return object_effects(before, after, present)


def _drawn(layout: SceneLayout) -> Tensor:
    return as_float(render(layout))  # (P,3,H,W)
