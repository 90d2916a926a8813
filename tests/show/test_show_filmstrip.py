from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from saccade import geometry
from saccade.errors import DataError, ShapeError
from saccade.show.acts import act_map, act_marks, acts_of, crop_content, one_example
from saccade.show.filmstrip import LAYOUT, contact_sheet, filmstrip, nested_crops
from saccade.show.overlay import Mask, Points, Polygon
from saccade.show.sheet import MARGIN, elide, font, wrap
from saccade.show.slot_table import slot_table
from saccade.trace import AttentionTrace, Look

GUTTER = LAYOUT.gutter


def crop_trace() -> AttentionTrace:
    """A crop of (20, 30, 60, 50) out of 100×100, read on a 10×20 grid."""
    frame = geometry.crop_frame(torch.tensor([[20.0, 30.0, 60.0, 50.0]]), (10, 20))
    look = Look("zoom", "crop", "crop", frame=frame, grid=(10, 20))
    return AttentionTrace((look,), image_size=torch.tensor([[100, 100]])).validate()


def test_padding_steps_are_not_acts(word_trace):
    acts = acts_of(word_trace)
    assert [act.title for act in acts] == [f"word {number}" for number in range(1, 8)]
    assert acts[0].note.endswith("gain 0.500")


def test_the_note_holds_the_raw_peak(soft_trace):
    assert acts_of(soft_trace)[0].note == "peak 0.700"


def test_cells_follow_the_frame(soft_trace):
    """Column 1 covers pixels 31…46, row 2 covers 47…62; the edge cells go on to the border."""
    laid = act_map(soft_trace, acts_of(soft_trace)[0], (100, 100), cells=True)
    rows, cols = np.where(laid > 0.5)
    assert (rows.min(), rows.max(), cols.min(), cols.max()) == (47, 62, 31, 46)
    assert laid[0, 0] == laid[99, 99] == pytest.approx(0.02)


def test_crop_outline_and_content():
    trace = crop_trace()
    act = acts_of(trace)[0]
    (outline,) = act_marks(trace, act, (200, 200))
    assert isinstance(outline, Polygon)
    np.testing.assert_allclose(outline.points, [(40, 60), (120, 60), (120, 100), (40, 100)])
    ramp = (torch.arange(100) + 0.5).expand(3, 100, 100) / 100  # value = x of the pixel centre / 100
    cut = crop_content(trace, act, ramp, (10, 20))
    np.testing.assert_allclose(cut[0, 4], (20 + 2 * (torch.arange(20) + 0.5)) / 100, atol=1e-4)


def test_the_chosen_cell_is_marked():
    weights = torch.full((1, 4, 4), 1 / 16)
    frame = torch.tensor([[16.0, 0.0, 15.0], [0.0, 16.0, 15.0]])
    look = Look("glimpse", "hard", "policy", weights, "softmax", frame, choice=torch.tensor([6]))
    trace = AttentionTrace((look,), image_size=torch.tensor([[100, 100]])).validate()
    (mark,) = act_marks(trace, acts_of(trace)[0], (100, 100))
    assert isinstance(mark, Points)
    assert mark.points == [(15 + 16 * 2.5, 15 + 16 * 1.5)]


def test_a_smaller_copy_of_the_picture_is_fine_and_another_shape_is_not(soft_trace):
    assert one_example(soft_trace, (50, 50)).image_size.tolist() == [[100, 100]]
    with pytest.raises(DataError, match="the picture that the model saw"):
        one_example(soft_trace, (50, 80))
    unplaced = dataclasses.replace(soft_trace, image_size=None)
    assert one_example(unplaced, (100, 100)).image_size.tolist() == [[100, 100]]


def test_the_panel_shows_the_look_on_its_pixels(soft_trace, grey_picture):
    strip = np.asarray(filmstrip(grey_picture, soft_trace, panel=100).convert("L")).astype(int)
    x, y = MARGIN + 120 + GUTTER, MARGIN
    panel = strip[y : y + 100, x : x + 100]
    rows, cols = np.where(panel == panel.max())
    assert (rows.mean(), cols.mean()) == (54.5, 38.5)


def test_shared_scale_makes_steps_comparable(grey_picture):
    weights = torch.zeros(1, 2, 2, 2)
    weights[0, 0] = 0.25
    weights[0, 1, 0, 0] = 1.0
    look = Look("word", "soft", "multiplier", weights, "softmax", geometry.scale_shift((50, 50), (0, 0)))
    trace = AttentionTrace((look,), image_size=torch.tensor([[100, 100]])).validate()
    first = (MARGIN + 120 + GUTTER + 10, MARGIN + 10)
    own = filmstrip(grey_picture, trace, scale="own", panel=100).getpixel(first)
    shared = filmstrip(grey_picture, trace, scale="shared", panel=100).getpixel(first)
    assert sum(own) > sum(shared)


def test_crops_are_drawn_with_their_content(grey_picture):
    picture = grey_picture.copy()
    picture[30:50, 20:60] = (200, 30, 30)  # exactly the crop
    strip = np.asarray(filmstrip(picture, crop_trace(), panel=100))
    x = MARGIN + 120 + GUTTER
    upper, lower = strip[MARGIN : MARGIN + 100, x : x + 100], strip[MARGIN + 106 : MARGIN + 206, x : x + 100]
    assert upper[5, 5].tolist() == [45, 45, 45]  # outside: 128 × 0.35, rounded
    assert upper[40, 40].tolist() == [200, 30, 30]
    assert lower[50, 50].tolist() == [200, 30, 30]
    assert lower[5, 50].tolist() == [255, 255, 255]  # a 2:1 grid leaves paper above and below


def test_nothing_is_cut_under_a_narrow_picture(monkeypatch, grey_picture):
    frame = geometry.scale_shift((15, 50), (0, 0))
    look = Look("stage1", "gate", "multiplier", torch.full((1, 2, 2), 0.5), "sigmoid", frame)
    last = dataclasses.replace(look, name="stage2", kind="soft", norm="none")
    trace = AttentionTrace((look, last), image_size=torch.tensor([[100, 30]]), total="product").validate()
    written = []
    monkeypatch.setattr(ImageDraw.ImageDraw, "text", lambda pen, xy, text, *ink, **how: written.append(text))
    filmstrip(grey_picture[:, :30], trace, answer="green (98%)", columns=2, panel=100)
    assert not [text for text in written if text.endswith("…")]
    assert written[written.index("stage1") + 1 :][:2] == ["peak 0.500", "mean 0.500"]
    assert "product of all looks" in " ".join(written)
    assert "weight: 0 … each panel's own peak" in " ".join(written)


def test_slot_table_paints_the_heaviest_sentence_brightest():
    weights = torch.tensor([[[0.1, 0.8, 0.1, 0.0], [0.0, 0.0, 0.0, 1.0]]])
    look = Look("hop", "slots", "multiplier", weights, "softmax", active=torch.tensor([[True, False]]))
    table = slot_table(look, ["Mary went home", "John slept", "Ann ate"], supporting={1}, text_width=200)
    column = np.asarray(table.convert("L"))[:-100, 28 + 14 + 200 + 4].astype(int)  # without the legend
    lit = np.where((column > 180) & (column < 250))[0]
    dark = np.where(column < 60)[0]
    assert dark.min() < lit.min() < lit.max() < dark.max()  # the second of three rows
    assert table.width == 28 + 14 + 200 + 77 + 28  # one active step


def test_contact_sheet_grid():
    pictures = [np.full((10, 10, 3), 25 * number, np.uint8) for number in range(5)]
    sheet = contact_sheet(pictures, columns=3, panel=40)
    assert sheet.size == (2 * MARGIN + 3 * 40 + 2 * GUTTER, 2 * MARGIN + 2 * 40 + GUTTER)
    x, y = MARGIN + 40 + GUTTER + 20, MARGIN + 40 + GUTTER + 20
    assert sheet.getpixel((x, y)) == (100, 100, 100)  # the fifth: second row, second column
    assert sheet.getpixel((x + 40 + GUTTER, y)) == (255, 255, 255)
    taller = contact_sheet(pictures, ["one", "two", "three", "four", "a caption that needs a second line"], panel=40)
    assert taller.height > 2 * MARGIN + 40 + 2 * 14


def test_text_fits_its_room():
    face = font(14)
    long = "the quick brown fox jumps over the lazy dog " * 3
    lines = wrap(long, face, 150, 3)
    assert len(lines) == 3
    assert lines[-1].endswith("…")
    assert all(face.getlength(line) <= 150 for line in lines)
    assert " ".join(wrap("a short one", face, 150)) == "a short one"
    assert wrap("", face, 100) == []
    assert elide("x" * 400, face, 60).endswith("…")
    assert elide("two\nlines", face, 200) == "two lines"


SIZE = 400


def crop(name: str, box: tuple[float, float, float, float]) -> Look:
    """A crop of a picture of 400 × 400 pixels, read at 10 × 10."""
    frame = geometry.crop_frame(torch.tensor([box], dtype=torch.float64), (10, 10))
    return Look(name, "crop", "crop", frame=frame, grid=(10, 10))


@pytest.fixture
def nested() -> AttentionTrace:
    """Two crops, one inside the other."""
    looks = (crop("scale2", (100, 120, 300, 320)), crop("scale3", (150, 180, 250, 280)))
    return AttentionTrace(looks, answer=torch.tensor([0]), total="mean")


def drawn(nested: AttentionTrace, **options: object) -> np.ndarray:
    """The drawing on a grey picture."""
    return np.asarray(nested_crops(Image.new("RGB", (SIZE, SIZE), (120, 120, 120)), nested, **options)).astype(int)


def test_frames_lie_where_the_crops_are(nested: AttentionTrace) -> None:
    """White lines on the edges of both boxes, at the height of their middles; none elsewhere in that row."""
    row = drawn(nested)[230, :, 0]
    bright = set(np.flatnonzero(row > 250).tolist())
    for edge in (100, 150, 250, 300):
        assert bright & set(range(edge - 3, edge + 3)), edge
    assert all(min(abs(place - edge) for edge in (100, 150, 250, 300)) <= 4 for place in bright)


def test_what_fewer_crops_show_is_darker(nested: AttentionTrace) -> None:
    """Inside both the picture is as it was; between them darker; outside darkest."""
    pixels = drawn(nested)[..., 0]
    inner, between, outside = pixels[230, 200], pixels[300, 200], pixels[380, 200]
    assert inner == 120
    assert inner > between > outside


def test_each_frame_says_its_name_and_what_was_said(nested: AttentionTrace) -> None:
    """A plate above the frame; it is longer with an answer on it."""
    plain, told = drawn(nested), drawn(nested, said={"scale2": "a very long answer"})
    assert (plain[105:118, 101:140] > 200).any()
    assert (told[105:118, 200:230].mean()) > (plain[105:118, 200:230].mean())


def test_wrong_input_is_named(soft_trace, grey_picture):
    hop = Look("hop", "slots", "multiplier", torch.ones(1, 3) / 3, "softmax")
    look = soft_trace.looks[0]
    two = dataclasses.replace(
        soft_trace,
        looks=(dataclasses.replace(look, weights=look.weights.expand(2, 4, 4)),),
        image_size=torch.tensor([[100, 100]] * 2),
    )
    for draw, error, named in (
        (lambda: filmstrip(grey_picture, AttentionTrace((hop,))), DataError, "slot_table"),
        (lambda: filmstrip(grey_picture, two), DataError, r"trace\[i\]"),
        (lambda: filmstrip(grey_picture, soft_trace, captions={"sofd": "x"}), DataError, "'soft'"),
        (lambda: filmstrip(grey_picture, soft_trace, scale="shard"), DataError, "'shared'"),
        (lambda: slot_table(hop, ["a"] * 4), ShapeError, "sentences"),
        (lambda: slot_table(look, ["a"]), DataError, "slots"),
        (lambda: contact_sheet([]), DataError, "contact sheet"),
        (lambda: contact_sheet([grey_picture], ["a", "b"]), ShapeError, "captions"),
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
