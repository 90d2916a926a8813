"""Scenes with one digit changed: each picture once, and the same as those of each question alone."""

import pytest
import torch
from attribute_stubs import recoloured_other, removed_other

from saccade.families.question.scenes import SceneBatch, SceneData, SceneDataConfig
from saccade.families.question.twins import (
    RECOLOURED_OTHER,
    RECOLOURED_TARGET,
    REMOVED_OTHER,
    changed_scenes,
)


@pytest.fixture(scope="module")
def batch() -> SceneBatch:
    """All questions about a few scenes: they change the same digits."""
    return SceneData(SceneDataConfig(name="mdist", glyphs="pack"), "test").take(torch.arange(40))


def test_every_question_gets_its_own_picture(batch):
    found = changed_scenes(batch)
    edits = {
        RECOLOURED_TARGET: batch.recolour_target(),
        RECOLOURED_OTHER: recoloured_other(batch),
        REMOVED_OTHER: removed_other(batch),
    }
    assert list(found.picture) == list(edits)
    for way, edited in edits.items():
        assert torch.equal(found.images[found.picture[way]], edited.images), way
    assert torch.equal(found.new_label, edits[RECOLOURED_TARGET].label)


def test_no_picture_is_drawn_twice_or_for_nothing(batch):
    found = changed_scenes(batch)
    assert len(found.images.flatten(1).unique(dim=0)) == len(found.images) < 3 * len(batch)
    assert torch.cat(list(found.picture.values())).unique().tolist() == list(range(len(found.images)))


def test_the_target_can_be_left_alone(batch):
    found = changed_scenes(batch, target=False)
    assert list(found.picture) == [RECOLOURED_OTHER, REMOVED_OTHER]
    assert torch.equal(found.images[found.picture[RECOLOURED_OTHER]], recoloured_other(batch).images)
    assert torch.cat(list(found.picture.values())).unique().tolist() == list(range(len(found.images)))
