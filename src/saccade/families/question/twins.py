"""Scenes rendered again with one thing changed.

Every digit of a scene is moved, removed and recoloured in each other colour
once; all questions about the scene share these twins. For each question, "other" is the digit whose area is most like
that of the digit asked for, and which can be moved if that one can. Moves are at least as long as a cell of the
coarsest grid, onto free ground.

Axes: B questions, S scenes, N slots, P digits present in all scenes or pictures, K other colours.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.data.scenes.backgrounds import Cornered
from saccade.data.scenes.drawing import COLOURS, render
from saccade.data.scenes.hashing import hash_u32, uniform_below
from saccade.data.scenes.layout import Places, SceneLayout, free_places
from saccade.families.question.scenes import SceneBatch
from saccade.metrics.maps.twins import TwinTruth, alike
from saccade.tasks.forward_passes import distinct

WAYS = len(COLOURS) - 1
"""K: colours that a digit does not have."""
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
        free = free_places(self.layout, least=least)  # (S,N)
        is_free = free.found[scene, obj]  # (P,)
        self.places = Places(
            torch.where(is_free, free.x[scene, obj], self.layout.x[scene, obj]),
            torch.where(is_free, free.y[scene, obj], self.layout.y[scene, obj]),
            is_free,
        )
        """(P,) each: where a digit is moved to; where it lies now if no free place was found."""
        moved = replace(each.move(obj, self.places.x, self.places.y), may_overlap=False)  # the ground is free
        self.moved_masks = moved.mask_of(obj)
        """(P,H,W) bool: each digit where it was moved to."""
        self.moved, self.removed = drawn(moved), drawn(each.remove(obj))
        """(P,3,H,W) each."""
        steps = torch.arange(1, len(COLOURS), device=obj.device)  # (K,)
        colours = (each.colour.gather(1, obj[:, None]) + steps) % len(COLOURS)  # (P,K)
        often = torch.arange(len(obj), device=obj.device).repeat_interleave(WAYS)  # (P·K,)
        self.recoloured = drawn(each[often].recolour(obj[often], colours.flatten()))
        """(P·K,3,H,W): digit by digit in each other colour."""
        self.patch: Tensor | None = None
        """(S,H,W) bool: a planted patch, where there is one and no digit lies over it."""
        background = self.layout.spec.background
        if isinstance(background, Cornered):
            self.patch = background.mask(self.layout.spec.size, obj.device) & ~self.masks.any(1)
            others = [replace(background, step=background.step + int(step)) for step in steps]
            specs = [replace(self.layout.spec, background=other) for other in others]
            pictures = [drawn(replace(self.layout, spec=spec)) for spec in specs]
            self.patch_recoloured = torch.stack(pictures, 1).flatten(0, 1)
            """(S·K,3,H,W): the patch in each other colour, scene by scene."""
        self.target = batch.object
        """(B,) slot of the digit asked for."""
        self.other = self._likest()
        """(B,) slot of another one."""

    def number(self, obj: Tensor) -> Tensor:
        """(B,): which of the P digits the slot ``obj`` (B,) of each question's scene is."""
        return self.numbers[self.scene, obj]

    def some_colour(self, obj: Tensor) -> Tensor:
        """(B,): which of the pictures ``recoloured`` has slot ``obj`` (B,) in a colour that the scene's hash picks."""
        bits = hash_u32(self.layout.seed, self.batch.scene, obj, _COLOUR)
        return self.number(obj) * WAYS + uniform_below(bits, WAYS)

    def objects(self) -> Tensor:
        """(B,N,H,W) bool: all that can have an effect on each question: the digits, and last a planted patch."""
        masks = self.masks if self.patch is None else torch.cat([self.masks, self.patch[:, None]], 1)
        return masks[self.scene]

    def truth(self) -> TwinTruth:
        """Where things are, for each question."""
        target, other = self.number(self.target), self.number(self.other)  # (B,)
        masks = [self.masks[self.scene, slot] for slot in (self.target, self.other)]  # (B,H,W) each
        return TwinTruth(
            target=masks[0],
            other=masks[1],
            target_new=self.moved_masks[target],
            other_new=self.moved_masks[other],
            has_moved=self.places.found[target] & self.places.found[other],
            is_alike=alike(*masks),
        )

    def _likest(self) -> Tensor:
        """(B,) the slot of the digit whose area is most like that of the target; of those that move, if it moves."""
        area = self.masks.sum(dim=(-2, -1)).float().clamp(min=1).log()[self.scene]  # (B,N)
        apart = (area - area.gather(1, self.target[:, None])).abs()  # (B,N)
        movable = torch.zeros_like(self.layout.present)
        movable[self.layout.present] = self.places.found
        stays = ~movable[self.scene] & movable[self.scene].gather(1, self.target[:, None])  # (B,N)
        others = self.layout.present[self.scene].scatter(1, self.target[:, None], False)  # (B,N)
        return (apart + 100.0 * stays).masked_fill(~others, torch.inf).argmin(1)


def drawn(layout: SceneLayout) -> Tensor:
    """The pictures (P,3,H,W) of scenes, in 0..1."""
    return as_float(render(layout))
