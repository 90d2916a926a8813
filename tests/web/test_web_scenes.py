"""Composed scenes are rendered by the generator's own renderer, with the truth beside them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("fastapi")

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from saccade.data.scenes.drawing import COLOURS, render, resized
from saccade.data.scenes.glyphs import load_pack
from saccade.data.scenes.layout import SceneSpec
from saccade.data.scenes.sampler import sample_layout
from saccade.errors import DataError
from saccade.web.page import CANVAS
from saccade.web.pictures import compose
from saccade.web.schemas import Digit, Scene


def digit(digit: int = 7, **changes) -> Digit:
    return Digit(**{"digit": digit, "x": 10, "y": 20, "size": 28, "colour": "red", "glyph": 0, **changes})


def pixels(scene: Scene) -> np.ndarray:
    return np.array(compose(scene).picture.image)


def test_one_digit_is_its_glyph_in_its_colour() -> None:
    """At 28 px a glyph is itself: colour · ink / 255, rounded; red is (146, 16, 16)."""
    found = compose(Scene(digits=[digit(7, glyph=3)]))
    glyph = load_pack().images[7 * 200 + 3].numpy().astype(np.float64)
    expected = np.zeros((CANVAS, CANVAS, 3))
    expected[20:48, 10:38] = np.round(glyph[..., None] * np.array([146, 16, 16]) / 255)
    assert (np.array(found.picture.image) == expected).all()
    mask = np.zeros((CANVAS, CANVAS), dtype=bool)
    mask[20:48, 10:38] = glyph > 0
    assert (found.masks[0].numpy() == mask).all()


@pytest.mark.parametrize("background", ["black", "distractors", "photo:cat"])
def test_a_drawn_scene_is_the_generators_and_its_description_renders_to_it(background: str) -> None:
    drawn = compose(Scene(seed=5, background=background))
    if background == "black":
        layout = sample_layout(SceneSpec(CANVAS), load_pack(), 5, torch.zeros(1).long())
        assert (np.array(drawn.picture.image) == render(layout)[0].permute(1, 2, 0).numpy()).all()
    again = compose(drawn.scene)
    assert (np.array(again.picture.image) == np.array(drawn.picture.image)).all()
    assert torch.equal(again.masks, drawn.masks)
    assert 5 <= len(drawn.scene.digits or ()) <= 9


def test_moving_a_digit_leaves_the_background_alone() -> None:
    before, after = (pixels(Scene(digits=[digit(x=x)], background="distractors", seed=3)) for x in (0, 60))
    empty = pixels(Scene(digits=[], background="distractors", seed=3))
    assert (before[:, 50:] == empty[:, 50:]).all()
    assert (after[:, :50] == empty[:, :50]).all()
    assert (before != after).any()
    assert empty.any()


def test_the_later_digit_lies_in_front() -> None:
    found = compose(Scene(digits=[digit(8), digit(1, colour="blue")]))
    assert not (found.masks[0] & found.masks[1]).any()
    ink = resized(load_pack().images[200:201], torch.tensor([28]), 28)[0] > 0
    assert torch.equal(found.masks[1][20:48, 10:38], ink)


def test_evidence_is_what_was_asked_for() -> None:
    truth = compose(Scene(digits=[digit(7), digit(3, x=60, y=60), digit(7, x=0, y=70)]))
    assert torch.equal(truth.evidence("7"), truth.masks[0] | truth.masks[2])
    assert torch.equal(truth.evidence(None), truth.masks.any(0))
    assert truth.evidence("4") is None
    assert truth.evidence("crown") is None
    assert compose(Scene(digits=[])).evidence(None) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "photo:",
        "photo:../cat",
        "photo:/etc/passwd",
        "photo:cat.jpg",
        "photo:train/coffee",
        "Black",
        "photo:C:\\cat",
    ],
)
def test_no_name_leads_to_a_file(name: str) -> None:
    with pytest.raises(DataError, match="no background"):
        compose(Scene(digits=[], background=name))


def test_a_digit_must_lie_in_the_picture() -> None:
    compose(Scene(digits=[digit(x=CANVAS - 28, y=0)]))
    with pytest.raises(DataError, match=r"digits\.1: a box of 28 px at \(73, 0\) leaves .* may be 0\.\.72"):
        compose(Scene(digits=[digit(), digit(x=73, y=0)]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"digit": 10},
        {"digit": True},
        {"x": -1},
        {"x": 1.5},
        {"size": 6},
        {"size": 101},
        {"colour": "pink"},
        {"glyph": 200},
    ],
)
def test_a_digit_is_described_exactly(wrong: dict) -> None:
    with pytest.raises(ValidationError):
        digit(**wrong)


@given(
    st.lists(
        st.builds(
            lambda number, size, x, y, colour, glyph: digit(
                number,
                size=size,
                x=round(x * (CANVAS - size)),
                y=round(y * (CANVAS - size)),
                colour=colour,
                glyph=glyph,
            ),
            st.integers(0, 9),
            st.integers(7, 100),
            st.floats(0, 1),
            st.floats(0, 1),
            st.sampled_from(COLOURS),
            st.integers(0, 199),
        ),
        max_size=6,
    )
)
def test_whatever_is_composed_has_its_ink_inside_its_boxes(digits: list[Digit]) -> None:
    found = compose(Scene(digits=digits))
    image = np.array(found.picture.image)
    assert not (image[~found.masks.any(0).numpy()] > 0).any()
    for each, mask in zip(digits, found.masks):
        outside = mask.clone()
        outside[each.y : each.y + each.size, each.x : each.x + each.size] = False
        assert not outside.any()
