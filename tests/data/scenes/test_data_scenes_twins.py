"""Twins of scenes: objects that are moved land on free ground, far enough away, and nothing else changes."""

from dataclasses import replace

import pytest
import torch

from saccade.data.scenes.backgrounds import Black, Distractors
from saccade.data.scenes.drawing import render
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import CELL, SceneSpec, free_places, move_to, other_background
from saccade.data.scenes.sampler import sample_layout

GLYPHS = glyphs_for("test", "pack")


@pytest.fixture(scope="module")
def layout():
    return sample_layout(SceneSpec(), GLYPHS, 5, torch.arange(120))


@pytest.fixture(scope="module")
def places(layout):
    return free_places(layout)


def movable(places, number=0):
    """(B,) the slot of the first (or ``number``-th) object of each scene that can be moved."""
    return (places.found.cumsum(1) <= number).sum(1)


@pytest.mark.parametrize("number", [0, 1])
def test_a_moved_object_lies_on_free_ground_a_cell_away(layout, places, number):
    obj = movable(places, number)
    moved = move_to(layout, obj, places)
    at = torch.arange(len(layout)), obj
    dx, dy = (moved.x - layout.x)[at].abs(), (moved.y - layout.y)[at].abs()
    assert (torch.maximum(dx, dy) >= CELL).all()
    masks = moved.masks()
    assert not (masks[at] & layout.all_objects()).any()  # not even its own old ink
    assert torch.equal(masks[at].flatten(1).sum(1), layout.masks()[at].flatten(1).sum(1))
    rest = torch.ones_like(layout.present)
    rest[at] = False
    assert torch.equal(masks[rest], layout.masks()[rest])
    changed = (render(moved) != render(layout)).any(1)
    assert not (changed & ~masks[at] & ~layout.mask_of(obj)).any()


@pytest.mark.parametrize("background", [Black(), Distractors()])
def test_another_background_leaves_the_objects(layout, background):
    scenes = replace(layout, spec=replace(layout.spec, background=background))
    changed = replace(scenes, spec=replace(scenes.spec, background=other_background(background)))
    before, after = render(scenes), render(changed)
    different = (before != after).any(1).flatten(1).any(1)
    assert different.float().mean() > 0.95
    assert torch.equal(changed.masks(), scenes.masks())
    plain = other_background(background)(GLYPHS, layout.seed, layout.index, 100)
    assert torch.equal(after.where(scenes.all_objects()[:, None], plain), after)
    assert changed.spec.background.name != background.name
