"""The strip of a caption: a panel a word, its gate and its map on the right pixels, smooth or cell by cell."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from glimpse_traces import glimpse_trace
from saccade.errors import DataError
from saccade.record import Record
from saccade.show import word_strip as module
from saccade.show.colours import smooth
from saccade.show.overlay import Mask
from saccade.show.report_sources import report_from_records
from saccade.show.sheet import elide
from saccade.show.word_strip import GATE, GUTTER, MARGIN, has_words, word_strip
from word_traces import CELLS, GATES, WORDS, word_trace

PICTURE = Image.new("RGB", (50, 40))


def drawn(monkeypatch: pytest.MonkeyPatch, **options) -> list:
    """The panels that reach the sheet."""
    kept: list = []

    class Spy(module._Sheet):
        def draw(self):
            kept.extend(self.panels)
            return super().draw()

    monkeypatch.setattr(module, "_Sheet", Spy)
    word_strip(PICTURE, options.pop("trace", word_trace()), **{"words": WORDS, **options})
    return kept


def test_the_picture_comes_first_and_then_a_panel_for_every_word(monkeypatch) -> None:
    panels = drawn(monkeypatch)
    assert [panel.word for panel in panels] == ["", "a", "small", "red", "seven"]
    assert [panel.gate for panel in panels] == [None, *GATES]
    assert list(panels[2].notes) == ["p 75% · β 0.50", "peak 0.810"]
    assert panels[0].notes == ["50 × 40 px"]


def test_one_word_is_one_panel_beside_the_picture(monkeypatch) -> None:
    """What is said of an empty scene: no evidence, and none of the steps behind the word."""
    panels = drawn(monkeypatch, words=[("nothing", 0.9)], answer="nothing", evidence=[None])
    assert [(panel.word, panel.gate) for panel in panels] == [("", None), ("nothing", GATES[0])]
    plain = drawn(monkeypatch, words=[("nothing", 0.9)])
    assert np.array_equal(np.asarray(panels[1].image), np.asarray(plain[1].image))  # nothing is outlined
    one, all_words = (word_strip(PICTURE, word_trace(), words=words, panel=200) for words in (WORDS[:1], WORDS))
    assert one.height == all_words.height  # one row, as of five panels


def test_one_word_leaves_room_for_the_legend(monkeypatch) -> None:
    told = []
    monkeypatch.setattr(module, "elide", lambda text, face, room: told.append(elide(text, face, room)) or told[-1])
    two_panels = 2 * MARGIN + 2 * 200 + GUTTER
    assert word_strip(PICTURE, word_trace(), words=WORDS[:1], panel=200).width > two_panels
    assert "gate β: how much of what is seen goes into the word" in told
    assert not [text for text in told if "…" in text and not text.startswith("weight: 0 … ")]
    assert word_strip(PICTURE, word_trace(gates=False), words=WORDS[:1], panel=200).width == 480


def test_without_a_gate_there_is_no_bar_and_no_word_of_it(monkeypatch) -> None:
    panels = drawn(monkeypatch, trace=word_trace(gates=False))
    assert {panel.gate for panel in panels} == {None}
    assert list(panels[1].notes) == ["p 90%", "peak 0.810"]


@pytest.mark.parametrize("cells", [False, True])
def test_the_map_of_a_word_peaks_in_its_cell(cells: bool, monkeypatch) -> None:
    """Cells of 10 × 10 pixels, shown fourfold: 40 pixels each; a white picture is darkest where nothing is."""
    for panel, cell in zip(drawn(monkeypatch, cells=cells)[1:], CELLS):
        lightness = np.asarray(panel.image.convert("L"), dtype=float)
        y, x = np.unravel_index(lightness.argmax(), lightness.shape)
        assert (y // 40, x // 40) == divmod(cell, 5)


def test_exact_cells_are_flat_and_smooth_ones_are_not(monkeypatch) -> None:
    flat, soft = (np.asarray(drawn(monkeypatch, cells=cells)[1].image) for cells in (True, False))
    assert len(np.unique(flat.reshape(-1, 3), axis=0)) == 2  # the one cell, and all others
    assert len(np.unique(soft.reshape(-1, 3), axis=0)) > 20


def test_a_shared_scale_leaves_weak_maps_dark(monkeypatch) -> None:
    trace = word_trace()
    look = trace.looks[0]
    weights = look.weights.clone()
    weights[0, 0] = 1 / 20  # evenly
    weak = dataclasses.replace(trace, looks=(dataclasses.replace(look, weights=weights),))
    own, shared = (
        np.asarray(drawn(monkeypatch, trace=weak, scale=scale)[1].image, dtype=float).mean()
        for scale in ("own", "shared")
    )
    assert own > shared + 50


def test_evidence_is_outlined_on_its_own_panel_alone(monkeypatch) -> None:
    inside = torch.zeros(40, 50, dtype=torch.bool)
    inside[5:15, 5:15] = True
    plain, marked = drawn(monkeypatch), drawn(monkeypatch, evidence=[None, Mask(inside)])
    differs = [np.any(np.asarray(one.image) != np.asarray(other.image)) for one, other in zip(plain, marked)]
    assert differs == [False, False, True, False, False]


def test_a_drawn_cell_is_ringed(monkeypatch) -> None:
    trace = word_trace()
    look = dataclasses.replace(trace.looks[0], kind="hard", choice=torch.tensor([[6, 7, 13, 19, 19]]))
    ringed = drawn(monkeypatch, trace=dataclasses.replace(trace, looks=(look,)))
    assert np.any(np.asarray(ringed[1].image) != np.asarray(drawn(monkeypatch)[1].image))


def test_rows_are_equally_long() -> None:
    """Five panels at three a row are three and two, at four a row too: rows are balanced."""
    three, four = (word_strip(PICTURE, word_trace(), words=WORDS, columns=columns) for columns in (3, 4))
    assert three.size == four.size
    one = word_strip(PICTURE, word_trace(), words=WORDS, columns=5)
    assert one.width > three.width
    assert one.height < three.height


def test_a_long_word_widens_the_columns_of_small_panels_up_to_a_point() -> None:
    def width(word: str) -> int:
        return word_strip(PICTURE, word_trace(), words=[*WORDS[:3], (word, 0.5)], columns=5, panel=50).width

    assert width("seven") == 2 * MARGIN + 5 * 110 + 4 * GUTTER
    assert width("seven") < width("photographer") < width("x" * 100) == 2 * MARGIN + 5 * 180 + 4 * GUTTER


def test_the_sentence_stands_above() -> None:
    told = word_strip(PICTURE, word_trace(), words=WORDS, answer="a small red seven")
    untold = word_strip(PICTURE, word_trace(), words=WORDS)
    assert told.height > untold.height
    band = np.asarray(told.convert("L"))[MARGIN : MARGIN + 26]
    assert band.min() < 80  # dark ink


def test_the_bar_is_as_long_as_the_gate_is_open() -> None:
    """Panels are 200 wide; below each the bar of β has its colour on that share of it."""
    sheet = np.asarray(word_strip(PICTURE, word_trace(), words=WORDS, columns=9))
    orange = (sheet == [int(GATE[place : place + 2], 16) for place in (1, 3, 5)]).all(-1)
    row = orange[: -3 * MARGIN].any(1).nonzero()[0][0]
    for number, gate in enumerate(GATES, start=1):
        left = MARGIN + number * (200 + GUTTER)
        assert orange[row, left - 1 : left + 201].sum() == pytest.approx(gate * 200, abs=2)


def test_traces_of_captions_are_known() -> None:
    assert has_words(word_trace())
    assert not has_words(glimpse_trace())


def test_a_scale_that_there_is_not_is_refused() -> None:
    with pytest.raises(DataError, match="'own'"):
        word_strip(PICTURE, word_trace(), words=WORDS, scale="owm")


def test_a_record_of_a_caption_is_drawn_word_by_word(monkeypatch) -> None:
    kept = []
    monkeypatch.setattr(
        "saccade.show.report_sources.word_strip", lambda *args, **options: kept.append(options) or PICTURE
    )
    words = [{"word": "a", "log_probability": 0.0}, {"word": "dog"}]
    record = Record(word_trace(), {"answer": "a dog", "words": words, "log_probability": -1.5}, PICTURE)
    page = report_from_records([record]).html()
    assert kept == [{"words": [("a", 1.0), ("dog", 0.0)], "answer": "a dog"}]
    assert "a dog" in page
    assert "log probability" in page


def test_the_filter_is_a_gaussian() -> None:
    """One bright pixel becomes the kernel itself: e^(−x²/2σ²) along each axis, and nothing is lost."""
    point = np.zeros((41, 41), dtype=np.float32)
    point[20, 20] = 1
    found = smooth(point, (4.0, 4.0), width=1.0)  # σ = 4 pixels
    assert found.sum() == pytest.approx(1, abs=1e-5)
    assert found[20, 24] / found[20, 20] == pytest.approx(np.exp(-0.5), abs=1e-5)
    assert found[26, 20] / found[20, 20] == pytest.approx(np.exp(-0.5 * 36 / 16), abs=1e-5)


def test_cells_may_be_wider_than_high() -> None:
    point = np.zeros((31, 31), dtype=np.float32)
    point[15, 15] = 1
    wide = smooth(point, (8.0, 2.0))
    assert wide[15, 19] > 5 * wide[19, 15]


@given(value=st.floats(0, 10), cell=st.floats(0.01, 40), height=st.integers(1, 12), width=st.integers(1, 12))
def test_an_even_map_stays_even(value: float, cell: float, height: int, width: int) -> None:
    even = np.full((height, width), value, dtype=np.float32)
    np.testing.assert_allclose(smooth(even, (cell, cell)), even, rtol=1e-5, atol=1e-6)


def test_a_filter_without_width_changes_nothing() -> None:
    values = np.random.default_rng(0).random((7, 9)).astype(np.float32)
    np.testing.assert_array_equal(smooth(values, (3.0, 3.0), width=0.0), values)
