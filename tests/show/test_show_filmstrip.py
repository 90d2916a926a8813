from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from saccade import geometry
from saccade.errors import DataError, ShapeError
from saccade.show.acts import act_map, act_marks, acts_of, crop_content, one_example
from saccade.show.filmstrip import GUTTER, MARGIN, filmstrip
from saccade.show.overlay import Mask, Points, Polygon
from saccade.show.sheet import elide, font, wrap
from saccade.show.sheets import contact_sheet
from saccade.show.slot_table import slot_table
from saccade.trace import AttentionTrace, Look


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


def test_golden_size_of_a_strip_with_one_look(soft_trace, grey_picture):
    """Two columns of 300 px; height: two panels, seam, captions and legend."""
    strip = filmstrip(grey_picture, soft_trace, question="7?", answer="green")
    assert strip.width == 2 * MARGIN + 2 * 300 + GUTTER
    assert 2 * 300 < strip.height < 2 * 300 + 200


def test_steps_wrap_into_rows_and_end_in_the_total(word_trace):
    picture = np.zeros((60, 90, 3), np.uint8)
    one_row = filmstrip(picture, word_trace, columns=9, panel=90)
    three_rows = filmstrip(picture, word_trace, columns=3, panel=90)
    assert one_row.width == 2 * MARGIN + 9 * 120 + 8 * GUTTER  # picture, seven words, total; captions need 120 px
    assert three_rows.width < one_row.width
    assert three_rows.height > 2.4 * (one_row.height - 2 * MARGIN)


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
    with pytest.raises(DataError, match="did you mean 'shared'"):
        filmstrip(grey_picture, trace, scale="shard")


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


def test_captions_name_the_steps_and_are_checked(word_trace):
    picture = np.zeros((60, 90, 3), np.uint8)
    plain = filmstrip(picture, word_trace, panel=90)
    named = filmstrip(picture, word_trace, panel=90, captions={"word": list("abcdefg")})
    assert plain.size == named.size
    assert plain.tobytes() != named.tobytes()
    with pytest.raises(DataError, match="did you mean 'word'"):
        filmstrip(picture, word_trace, captions={"words": "x"})


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


@pytest.mark.parametrize("size", [(1, 1), (3, 2000), (900, 2)])
def test_odd_pictures(size, soft_trace):
    trace = dataclasses.replace(soft_trace, image_size=torch.tensor([size]))
    strip = filmstrip(np.zeros((*size, 3), np.uint8), trace, question="q " * 300, answer="a" * 500, panel=200)
    assert strip.width >= 320
    assert strip.height < 2500


def test_drawing_changes_nothing(soft_trace, grey_picture):
    before = soft_trace.looks[0].weights.clone()
    picture = grey_picture.copy()
    filmstrip(picture, soft_trace, outline=Mask(np.eye(100, dtype=bool)))
    assert torch.equal(soft_trace.looks[0].weights, before)
    np.testing.assert_array_equal(picture, grey_picture)


def test_bad_traces(soft_trace, grey_picture):
    two = AttentionTrace((Look("hop", "slots", "multiplier", torch.ones(1, 3) / 3, "softmax"),))
    with pytest.raises(DataError, match="slot_table"):
        filmstrip(grey_picture, two)
    look = soft_trace.looks[0]
    batch = dataclasses.replace(
        soft_trace,
        looks=(dataclasses.replace(look, weights=look.weights.expand(2, 4, 4)),),
        image_size=torch.tensor([[100, 100]] * 2),
    )
    with pytest.raises(DataError, match=r"trace\[i\]"):
        filmstrip(grey_picture, batch)


def test_slot_table_paints_the_heaviest_sentence_brightest():
    weights = torch.tensor([[[0.1, 0.8, 0.1, 0.0], [0.0, 0.0, 0.0, 1.0]]])
    look = Look("hop", "slots", "multiplier", weights, "softmax", active=torch.tensor([[True, False]]))
    table = slot_table(look, ["Mary went home", "John slept", "Ann ate"], supporting={1}, text_width=200)
    column = np.asarray(table.convert("L"))[:-100, 28 + 14 + 200 + 4].astype(int)  # without the legend
    lit = np.where((column > 180) & (column < 250))[0]
    dark = np.where(column < 60)[0]
    assert dark.min() < lit.min() < lit.max() < dark.max()  # the second of three rows
    assert table.width == 28 + 14 + 200 + 77 + 28  # one active step


def test_slot_table_errors(soft_trace):
    look = Look("hop", "slots", "multiplier", torch.ones(1, 3) / 3, "softmax")
    with pytest.raises(ShapeError, match="sentences"):
        slot_table(look, ["a"] * 4)
    with pytest.raises(ShapeError, match="sentences"):
        slot_table(look, [])
    with pytest.raises(DataError, match="slots"):
        slot_table(soft_trace.looks[0], ["a"])
    with pytest.raises(DataError, match="no active step"):
        slot_table(dataclasses.replace(look, active=torch.tensor([False])), ["a"])
    with pytest.raises(DataError, match=r"example\(i\)"):
        slot_table(dataclasses.replace(look, weights=torch.ones(2, 3) / 3), ["a"])


def test_contact_sheet_grid():
    pictures = [np.full((10, 10, 3), 25 * number, np.uint8) for number in range(5)]
    sheet = contact_sheet(pictures, columns=3, panel=40)
    assert sheet.size == (2 * 28 + 3 * 40 + 2 * 18, 2 * 28 + 2 * 40 + 18)
    assert sheet.getpixel((28 + 1 * 58 + 20, 28 + 58 + 20)) == (100, 100, 100)  # the fifth: second row, second column
    assert sheet.getpixel((28 + 2 * 58 + 20, 28 + 58 + 20)) == (255, 255, 255)
    taller = contact_sheet(pictures, ["one", "two", "three", "four", "a caption that needs a second line"], panel=40)
    assert taller.height > 28 * 2 + 40


def test_contact_sheet_errors():
    with pytest.raises(DataError, match="no pictures"):
        contact_sheet([])
    with pytest.raises(ShapeError, match="captions"):
        contact_sheet([Image.new("RGB", (2, 2))], ["a", "b"])


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
