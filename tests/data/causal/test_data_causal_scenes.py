"""Causal scenes in memory: twins change one thing, and scenes are the same however many are drawn at once."""

import numpy as np
import pytest
import torch

from saccade.data.causal import scene_writing as causal
from saccade.data.causal.row_folder import SCENE
from saccade.data.causal.scene_writing import causal_batches, rows_of
from saccade.data.causal.scenes import TWINS, scene_digest
from saccade.data.scenes.backgrounds import Distractors
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import CELL, SceneSpec, free_places

GLYPHS = glyphs_for("test", "pack")
BACKGROUNDS = {"black": SceneSpec(), "distractors": SceneSpec(background=Distractors())}


def drawn(spec=None, count=40, start=0):
    return list(causal_batches(spec or SceneSpec(), GLYPHS, 3, start, count))


@pytest.fixture(scope="module")
def batch():
    (made,) = drawn()
    return made


def test_twins_change_one_object_and_nothing_else(batch):
    at = torch.arange(len(batch.target))
    assert (batch.target != batch.other).all()
    for name in TWINS[:-1]:
        whose, _, what = name.partition("_")
        obj = getattr(batch, whose)
        scene, twin = batch.layouts[SCENE], batch.layouts[name]
        changed = {
            "recoloured": scene.colour != twin.colour,
            "moved": ((scene.x - twin.x).abs() >= CELL) | ((scene.y - twin.y).abs() >= CELL),
            "removed": scene.present != twin.present,
        }[what]
        assert changed[at, obj].all(), name
        assert changed.sum() == len(at), name
        touched = (batch.images[SCENE] != batch.images[name]).any(1)
        number = obj[:, None, None].numpy() + 1
        old, new = (batch.masks[which] == number for which in (SCENE, name if what == "moved" else SCENE))
        assert not (touched & ~old & ~new).any(), name
        if what == "moved":  # to free ground: not even its own old ink is there
            assert not (new & (batch.masks[SCENE] > 0)).any(), name
            assert (new.sum((1, 2)) == old.sum((1, 2))).all(), name


@pytest.mark.parametrize("spec", BACKGROUNDS.values(), ids=BACKGROUNDS)
def test_another_background_leaves_the_objects(spec):
    (made,) = drawn(spec, 12)
    layout, changed = made.layouts[SCENE], made.layouts["background_changed"]
    before, after = made.images[SCENE], made.images["background_changed"]
    assert (before != after).any((1, 2, 3)).all()
    plain = changed.spec.background(GLYPHS, layout.seed, layout.index, 100).numpy()
    assert np.array_equal(np.where(made.masks[SCENE][:, None] > 0, plain, after), plain)
    assert changed.spec.background.name != layout.spec.background.name


def test_the_other_object_is_the_one_of_nearest_area_that_can_be_moved(batch):
    areas = batch.layouts[SCENE].masks().flatten(2).sum(-1)
    found = free_places(batch.layouts[SCENE]).found
    for at, (target, other) in enumerate(zip(batch.target.tolist(), batch.other.tolist())):
        rivals = [slot for slot in found[at].nonzero().flatten().tolist() if slot != target]
        assert other in rivals
        nearest = min(abs(int(areas[at, slot] - areas[at, target])) for slot in rivals)
        assert abs(int(areas[at, other] - areas[at, target])) == nearest


def test_scenes_do_not_depend_on_how_many_are_drawn_at_once(batch, monkeypatch):
    def digests(batches):
        return [
            (row["id"], scene_digest(row, *({k: v[at] for k, v in held.items()} for held in (each.images, each.masks))))
            for each in batches
            for at, row in enumerate(rows_of(each))
        ]

    whole = digests([batch])
    assert len({digest for _, digest in whole}) == 40
    monkeypatch.setattr(causal, "SCENES_AT_ONCE", 7)
    assert digests(drawn()) == whole
    assert digests(drawn(count=5, start=int(whole[8][0]))) == whole[8:13]
