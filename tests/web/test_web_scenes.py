"""Composed scenes are the generator's own, with the truth beside them; and what is told of scenes of training holds."""

from typing import Any

import numpy as np
import pytest
import torch
from web_models import facts_of

from saccade.families.caption.scenes import sample_captioned, scene_spec
from saccade.families.multiset.scenes import MultisetSpec, sample_multisets
from saccade.families.question.scenes import SPEC
from saccade.web.page import page_entry

pytest.importorskip("fastapi")

from pydantic import ValidationError

from saccade.data.scenes.drawing import render, resized
from saccade.data.scenes.glyphs import load_pack
from saccade.data.scenes.layout import SceneSpec
from saccade.data.scenes.sampler import sample_layout
from saccade.errors import DataError
from saccade.families.page import CANVAS
from saccade.web.pictures import compose
from saccade.web.schemas import Digit, Scene


def digit(digit: int = 7, **changes: Any) -> Digit:
    return Digit(**{"digit": digit, "x": 10, "y": 20, "size": 28, "colour": "red", "glyph": 0, **changes})


@pytest.mark.parametrize("background", ["black", "distractors", "photo:cat"])
def test_a_drawn_scene_is_the_generators_and_its_description_renders_to_it(background: str) -> None:
    drawn = compose(Scene(seed=5, background=background))
    if background == "black":
        layout = sample_layout(SceneSpec(CANVAS), load_pack(), 5, torch.zeros(1).long())
        assert (np.array(drawn.picture.image) == render(layout)[0].permute(1, 2, 0).numpy()).all()
    again = compose(drawn.scene)
    assert (np.array(again.picture.image) == np.array(drawn.picture.image)).all()
    assert torch.equal(again.masks, drawn.masks)


def test_the_later_digit_lies_in_front() -> None:
    found = compose(Scene(digits=[digit(8), digit(1, colour="blue")]))
    assert not (found.masks[0] & found.masks[1]).any()
    ink = resized(load_pack().images[200:201], torch.tensor([28]), 28)[0] > 0
    assert torch.equal(found.masks[1][20:48, 10:38], ink)


def test_evidence_is_what_was_asked_for() -> None:
    truth = compose(Scene(digits=[digit(7), digit(3, x=60, y=60), digit(7, x=0, y=70)]))
    assert torch.equal(truth.evidence("7"), truth.masks[0] | truth.masks[2])
    assert torch.equal(truth.evidence(None), truth.masks.any(0))
    assert truth.evidence("4") is truth.evidence("crown") is None
    assert compose(Scene(digits=[])).evidence(None) is None


def test_what_cannot_be_drawn_is_refused() -> None:
    compose(Scene(digits=[digit(x=CANVAS - 28, y=0)]))
    with pytest.raises(DataError, match=r"digits\.1: a box of 28 px at \(73, 0\) leaves .* may be 0\.\.72"):
        compose(Scene(digits=[digit(), digit(x=73, y=0)]))
    for name in ("", "photo:", "photo:../cat", "photo:/etc/passwd", "photo:cat.jpg", "photo:train/coffee", "Black"):
        with pytest.raises(DataError, match="no background"):
            compose(Scene(digits=[], background=name))
    for wrong in ({"digit": 10}, {"digit": True}, {"x": -1}, {"x": 1.5}, {"size": 6}, {"size": 101}, {"colour": "pink"},
                  {"glyph": 200}):  # fmt: skip
        with pytest.raises(ValidationError):
            digit(**wrong)


@pytest.mark.parametrize(
    ("name", "sample", "spec"),
    [
        ("mref", sample_layout, SPEC),
        ("scenes", sample_captioned, scene_spec(CANVAS)),
        ("mnist-multiset", sample_multisets, MultisetSpec()),
        ("mnist-set", sample_multisets, MultisetSpec(repeats=False)),
        ("mnist-single", sample_multisets, MultisetSpec(repeats=False, alone=True)),
    ],
)
def test_what_is_told_of_training_holds_for_what_is_drawn(name: str, sample: Any, spec: Any) -> None:
    trained = page_entry(facts_of(name)).scenes
    layout = sample(spec, load_pack(), 3, torch.arange(300))
    assert (int(layout.count.min()), int(layout.count.max())) == trained.digits
    sides = set(layout.side[layout.present].tolist())
    assert all(any(low <= side <= high for low, high in trained.sizes) for side in sides)
    assert all(sides & set(range(low, high + 1)) for low, high in trained.sizes)
    drawn = [row[here].tolist() for row, here in zip(layout.classes, layout.present)]
    assert any(len(set(digits)) < len(digits) for digits in drawn) == trained.repeats
