"""Filmstrips, nested crops, contact sheets and steps on the right pixels, and looks over slots as one table."""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

from saccade import geometry
from saccade.errors import DataError, ShapeError
from saccade.record import Record
from saccade.show import filmstrip as module
from saccade.show.acts import Drawing, nested_crops
from saccade.show.filmstrip import LAYOUT, contact_sheet, filmstrip, glimpse_strip, has_glimpses, has_words, word_strip
from saccade.show.overlay import Mask, Scanpath, draw_marks
from saccade.show.report import Report
from saccade.show.report_sources import report_from_records
from saccade.show.sheet import MARGIN, Panel
from saccade.show.slot_table import LEVELS, SlotHeat, slot_grid, slot_table
from saccade.trace import AttentionTrace, Look
from step_traces import CELLS, GATES, WORDS, glimpse_trace, word_trace

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


PICTURE = Image.new("RGB", (50, 40))
LABELS = [("seven", 0.875), ("three", 0.5)]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Panel]:
    """The panels that reached the last sheet."""
    kept: list[Panel] = []
    draw = module.draw_sheet

    def spy(panels, *args, **options):
        kept[:] = panels
        return draw(panels, *args, **options)

    monkeypatch.setattr(module, "draw_sheet", spy)
    return kept


def texts(panel: Panel) -> list[str]:
    return [text for lines in (panel.lines, *panel.cards) for text, *_ in lines]


def pixels(panel: Panel) -> np.ndarray:
    return np.asarray(panel.images[0])


def words_drawn(drawn: list[Panel], **options) -> list[Panel]:
    word_strip(PICTURE, options.pop("trace", word_trace()), **{"words": WORDS, **options})
    return list(drawn)


def rows_drawn(drawn: list[Panel], **options) -> list[list[Panel]]:
    """Five pictures and a text in each row."""
    glimpse_strip(PICTURE, options.pop("trace", glimpse_trace()), **{"labels": LABELS, **options})
    return [drawn[start : start + 6] for start in range(0, len(drawn), 6)]


def test_the_picture_comes_first_and_then_a_panel_for_every_word(drawn) -> None:
    panels = words_drawn(drawn)
    assert [panel.share for panel in panels] == [None, *GATES]
    assert texts(panels[0]) == ["50 × 40 px"]
    assert texts(panels[2]) == ["small", "p 75% · β 0.50", "peak 0.810"]
    without = words_drawn(drawn, trace=word_trace(gates=False), words=WORDS[:1])
    assert [panel.share for panel in without] == [None, None]
    assert texts(without[1]) == ["a", "p 90%", "peak 0.810"]


@pytest.mark.parametrize("cells", [False, True])
def test_the_map_of_a_word_peaks_in_its_cell(cells: bool, drawn) -> None:
    """Cells of 10 × 10 pixels, shown fourfold: 40 pixels each; a white picture is darkest where nothing is."""
    panels = words_drawn(drawn, cells=cells)[1:]
    for panel, cell in zip(panels, CELLS):
        lightness = np.asarray(panel.images[0].convert("L"), dtype=float)
        y, x = np.unravel_index(lightness.argmax(), lightness.shape)
        assert (y // 40, x // 40) == divmod(cell, 5)
    colours = len(np.unique(pixels(panels[0]).reshape(-1, 3), axis=0))
    assert (colours == 2) == cells  # the one cell, and all others


def test_a_row_for_each_label_and_one_for_nothing_more(drawn) -> None:
    assert [texts(row[-1]) for row in rows_drawn(drawn)] == [
        ["seven", "88% sure"], ["three", "50% sure"], ["nothing more"],
    ]  # fmt: skip
    empty = rows_drawn(drawn, trace=glimpse_trace(labels=0), labels=())
    assert [texts(row[-1]) for row in empty] == [["nothing more"]]
    endless = rows_drawn(drawn, trace=glimpse_trace(labels=4), labels=LABELS * 2)
    assert [texts(row[-1])[0] for row in endless] == ["seven", "three"] * 2


def test_glimpses_are_where_their_cells_are(monkeypatch) -> None:
    """Cell 7 of 4 × 5 is row 1, column 2: of a picture shown at 200 × 160 its centre is (100, 60)."""
    seen: list[Scanpath] = []
    monkeypatch.setattr(
        module, "draw_marks", lambda image, marks, size: (seen.extend(marks), draw_marks(image, marks, size))[1]
    )
    glimpse_strip(PICTURE, glimpse_trace(), labels=LABELS)
    assert [path.points for path in seen] == [
        [(20.0, 20.0), (100.0, 60.0)],
        [(140.0, 100.0), (140.0, 100.0)],
        [(180.0, 140.0), (140.0, 20.0)],
    ]


def test_a_report_draws_each_record_by_its_steps(soft_trace) -> None:
    assert (has_words(word_trace()), has_words(glimpse_trace())) == (True, False)
    assert (has_glimpses(glimpse_trace()), has_glimpses(soft_trace)) == (True, False)
    info = {"model": "m", "answer": "{three, seven}", "labels": [["seven", 0.875], ["three", 0.5]], "confidence": 0.4}
    words = [{"word": "a", "log_probability": 0.0}, {"word": "dog"}]
    caption = Record(word_trace(), {"answer": "a dog", "words": words, "log_probability": -1.5}, PICTURE)
    page = report_from_records([Record(glimpse_trace(), info, PICTURE), caption]).html()
    strips = (
        glimpse_strip(PICTURE, glimpse_trace(), labels=LABELS, answer="{three, seven} (40%)"),
        word_strip(PICTURE, word_trace(), words=[("a", 1.0), ("dog", 0.0)], answer="a dog"),
    )
    for strip in strips:
        assert f'width="{strip.width}" height="{strip.height}"' in page
    assert "log probability" in page


TEXTS = ["Mary went home", "<b>John</b> slept"]


def hop(name: str, *weights: float, active: bool | None = None) -> Look:
    is_active = None if active is None else torch.tensor([active])
    return Look(name, "slots", "multiplier", torch.tensor([list(weights)]), norm="none", active=is_active)


def test_every_look_is_a_column_and_empty_slots_are_a_row() -> None:
    steps = Look("read", "slots", "multiplier", torch.tensor([[[0.1, 0.9, 0, 0], [0.5, 0.5, 0, 0]]]))
    grid = slot_grid([hop("hop1", 0.5, 0.1, 0.1, 0.3), steps], TEXTS, supporting=(1,))
    assert grid.headings == ("hop1", "read 1", "read 2")
    assert grid.texts == (*TEXTS, "(2 empty slots, together)")
    np.testing.assert_allclose(grid.weights, [[0.5, 0.1, 0.5], [0.1, 0.9, 0.5], [0.4, 0, 0]], atol=1e-6)
    assert grid.legend.startswith("weight: 0 … 0.9")
    assert grid.bar


def test_a_page_paints_cells_by_class_and_escapes_texts() -> None:
    grid = slot_grid([hop("<hop>", 0.2, 0.8)], TEXTS, supporting=(0,))
    page = Report("", blocks=[SlotHeat(grid, "`Who`?")]).html().split("</header>")[1]
    assert '<td class="num heat-50" title="0.8">0.80</td>' in page
    assert f'<td class="num heat-{round(LEVELS * 0.25)}" title="0.2">0.20</td>' in page
    assert '<th scope="row" class="needed" title="the answer needs it">Mary went home</th>' in page
    assert "&lt;b&gt;John&lt;/b&gt; slept" in page
    assert "&lt;hop&gt;" in page
    assert "style" not in page


def test_a_drawing_paints_the_heaviest_sentence_brightest():
    weights = torch.tensor([[[0.1, 0.8, 0.1, 0.0], [0.0, 0.0, 0.0, 1.0]]])
    look = Look("hop", "slots", "multiplier", weights, "softmax", active=torch.tensor([[True, False]]))
    table = slot_table([look], ["Mary went home", "John slept", "Ann ate"], supporting={1}, text_width=200)
    column = np.asarray(table.convert("L"))[:-100, 28 + 14 + 200 + 4].astype(int)  # without the legend
    lit = np.where((column > 180) & (column < 250))[0]
    dark = np.where(column < 60)[0]
    assert dark.min() < lit.min() < lit.max() < dark.max()  # the second of three rows
    assert table.width == 28 + 14 + 200 + 77 + 28  # one active step
