"""What was said step by step, as strips on the right pixels, and looks over slots as one table."""

import numpy as np
import pytest
import torch
from PIL import Image

from saccade.record import Record
from saccade.show import filmstrip as module
from saccade.show.filmstrip import glimpse_strip, has_glimpses, has_words, word_strip
from saccade.show.overlay import Scanpath, draw_marks
from saccade.show.report import Report
from saccade.show.report_sources import report_from_records
from saccade.show.sheet import Panel
from saccade.show.slot_table import LEVELS, SlotHeat, slot_grid, slot_table
from saccade.trace import Look
from step_traces import CELLS, GATES, WORDS, glimpse_trace, word_trace

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
