"""Filmstrips, nested crops and contact sheets: the right pixels in the right place, and text that fits."""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

from saccade import geometry
from saccade.errors import DataError, ShapeError
from saccade.show.acts import Drawing, nested_crops
from saccade.show.filmstrip import LAYOUT, contact_sheet, filmstrip
from saccade.show.overlay import Mask
from saccade.show.sheet import MARGIN
from saccade.show.slot_table import slot_table
from saccade.trace import AttentionTrace, Look

GUTTER = LAYOUT.gutter


def crop(name: str, box: tuple[float, ...], grid: tuple[int, int] = (10, 10)) -> Look:
    frame = geometry.crop_frame(torch.tensor([box], dtype=torch.float64), grid)
    return Look(name, "crop", "crop", frame=frame, grid=grid)


CROP = AttentionTrace((crop("zoom", (20, 30, 60, 50), (10, 20)),), image_size=torch.tensor([[100, 100]])).validate()
NESTED = AttentionTrace(
    (crop("scale2", (100, 120, 300, 320)), crop("scale3", (150, 180, 250, 280))), answer=torch.tensor([0]), total="mean"
)


def drawing(picture: np.ndarray, trace: AttentionTrace) -> Drawing:
    return Drawing(picture, trace, lambda image: image)


def test_cells_follow_the_frame(soft_trace, grey_picture):
    """Column 1 covers pixels 31…46, row 2 covers 47…62; the edge cells go on to the border."""
    on = drawing(grey_picture, soft_trace)
    laid = on.map(on.acts[0], cells=True)
    rows, cols = np.where(laid > 0.5)
    assert (rows.min(), rows.max(), cols.min(), cols.max()) == (47, 62, 31, 46)
    assert laid[0, 0] == laid[99, 99] == pytest.approx(0.02)


def test_crops_and_chosen_cells_are_outlined(grey_picture):
    on = Drawing(grey_picture, CROP, lambda image: image.resize((200, 200)))
    (outline,) = on.marks(on.acts[0])
    np.testing.assert_allclose(outline.points, [(40, 60), (120, 60), (120, 100), (40, 100)])
    weights = torch.full((1, 4, 4), 1 / 16)
    frame = torch.tensor([[16.0, 0.0, 15.0], [0.0, 16.0, 15.0]])
    look = Look("glimpse", "hard", "policy", weights, "softmax", frame, choice=torch.tensor([6]))
    on = drawing(grey_picture, AttentionTrace((look,), image_size=torch.tensor([[100, 100]])).validate())
    (mark,) = on.marks(on.acts[0])
    assert mark.points == [(15 + 16 * 2.5, 15 + 16 * 1.5)]


def test_the_panel_shows_the_look_on_its_pixels(soft_trace, grey_picture):
    strip = np.asarray(filmstrip(grey_picture, soft_trace, panel=100).convert("L")).astype(int)
    x, y = MARGIN + 120 + GUTTER, MARGIN
    panel = strip[y : y + 100, x : x + 100]
    rows, cols = np.where(panel == panel.max())
    assert (rows.mean(), cols.mean()) == (54.5, 38.5)


def test_crops_are_drawn_with_their_content(grey_picture):
    picture = grey_picture.copy()
    picture[30:50, 20:60] = (200, 30, 30)  # exactly the crop
    strip = np.asarray(filmstrip(picture, CROP, panel=100))
    x = MARGIN + 120 + GUTTER
    upper, lower = strip[MARGIN : MARGIN + 100, x : x + 100], strip[MARGIN + 106 : MARGIN + 206, x : x + 100]
    assert upper[5, 5].tolist() == [45, 45, 45]  # outside: 128 × 0.35, rounded
    assert upper[40, 40].tolist() == [200, 30, 30]
    assert lower[50, 50].tolist() == [200, 30, 30]
    assert lower[5, 50].tolist() == [255, 255, 255]  # a 2:1 grid leaves paper above and below


def test_contact_sheet_grid():
    pictures = [np.full((10, 10, 3), 25 * number, np.uint8) for number in range(5)]
    sheet = contact_sheet(pictures, columns=3, panel=40)
    assert sheet.size == (2 * MARGIN + 3 * 40 + 2 * GUTTER, 2 * MARGIN + 2 * 40 + GUTTER)
    x, y = MARGIN + 40 + GUTTER + 20, MARGIN + 40 + GUTTER + 20
    assert sheet.getpixel((x, y)) == (100, 100, 100)  # the fifth: second row, second column
    assert sheet.getpixel((x + 40 + GUTTER, y)) == (255, 255, 255)
    taller = contact_sheet(pictures, ["one", "two", "three", "four", "a caption that needs a second line"], panel=40)
    assert taller.height > 2 * MARGIN + 40 + 2 * 14


def test_frames_of_nested_crops_lie_on_their_edges_and_what_fewer_crops_show_is_darker() -> None:
    grey = Image.new("RGB", (400, 400), (120, 120, 120))
    plain, named = (
        np.asarray(nested_crops(grey, NESTED, captions=said)).astype(int)
        for said in ({}, {"scale2": "a very long answer"})
    )  # fmt: skip
    bright = set(np.flatnonzero(plain[230, :, 0] > 250).tolist())
    for edge in (100, 150, 250, 300):
        assert bright & set(range(edge - 3, edge + 3)), edge
    assert all(min(abs(place - edge) for edge in (100, 150, 250, 300)) <= 4 for place in bright)
    inner, between, outside = plain[230, 200, 0], plain[300, 200, 0], plain[380, 200, 0]
    assert inner == 120 > between > outside
    assert (plain[105:118, 101:140] > 200).any()  # a plate above the frame, longer with an answer on it
    assert named[105:118, 200:230].mean() > plain[105:118, 200:230].mean()


def test_wrong_input_is_named(soft_trace, grey_picture):
    hop = Look("hop", "slots", "multiplier", torch.ones(1, 3) / 3, "softmax")
    look = dataclasses.replace(soft_trace.looks[0], weights=soft_trace.looks[0].weights.expand(2, 4, 4))
    two = dataclasses.replace(soft_trace, looks=(look,), image_size=torch.tensor([[100, 100]] * 2))
    for draw, error, named in (
        (lambda: filmstrip(grey_picture, AttentionTrace((hop,))), DataError, "slot_table"),
        (lambda: filmstrip(grey_picture, two), DataError, r"trace\[i\]"),
        (lambda: filmstrip(grey_picture[:50], soft_trace), DataError, "100×50"),
        (lambda: slot_table([hop], ["a"] * 4), ShapeError, "sentences"),
        (lambda: contact_sheet([]), DataError, "contact sheet"),
    ):
        with pytest.raises(error, match=named):
            draw()


@pytest.mark.parametrize("size", [(1, 1), (3, 2000), (900, 2)])
def test_odd_pictures_are_drawn_and_nothing_of_theirs_is_changed(size, soft_trace):
    trace = dataclasses.replace(soft_trace, image_size=torch.tensor([size]))
    picture, weights = np.zeros((*size, 3), np.uint8), soft_trace.looks[0].weights.clone()
    strip = filmstrip(picture, trace, question="q " * 300, answer="a" * 500, outline=Mask(np.ones(size, bool)))
    assert strip.width >= 320
    assert strip.height < 2500
    assert torch.equal(soft_trace.looks[0].weights, weights)
    assert not picture.any()
