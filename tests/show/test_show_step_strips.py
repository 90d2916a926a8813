"""Strips of what was said step by step: panels, gates and glimpses on the right pixels, one scale a kind."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from glimpse_traces import glimpse_trace
from saccade.record import Record
from saccade.show import filmstrip as module
from saccade.show.filmstrip import glimpse_strip, has_glimpses, has_words, word_strip
from saccade.show.overlay import Scanpath, draw_marks
from saccade.show.report_sources import report_from_records
from saccade.show.sheet import Panel
from word_traces import CELLS, GATES, WORDS, word_trace

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
