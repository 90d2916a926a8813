"""The scenes of a batch of questions with one digit changed, for the causal tests of answers.

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
from saccade.families.question.scenes.data import SceneBatch
from saccade.tasks.forward_passes import distinct

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
