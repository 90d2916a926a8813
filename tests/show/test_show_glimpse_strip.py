"""The strip of a model that reads label by label: rows, numbered glimpses on the right pixels, one scale a kind."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

from glimpse_traces import glimpse_trace
from saccade.record import Record
from saccade.show import glimpse_strip as module
from saccade.show.glimpse_strip import GUTTER, MARGIN, glimpse_strip, has_glimpses
from saccade.show.overlay import Mask, Scanpath, draw_marks
from saccade.show.report_sources import report_from_records

PICTURE = Image.new("RGB", (50, 40))
LABELS = [("seven", 0.875), ("three", 0.5)]


def drawn_rows(monkeypatch: pytest.MonkeyPatch, **options) -> list:
    """The rows that reach the sheet."""
    kept: list = []

    class Spy(module._Sheet):
        def draw(self):
            kept.extend(self.rows)
            return super().draw()

    monkeypatch.setattr(module, "_Sheet", Spy)
    glimpse_strip(PICTURE, options.pop("trace", glimpse_trace()), **options)
    return kept


def test_a_row_for_each_label_and_one_for_nothing_more(monkeypatch) -> None:
    rows = drawn_rows(monkeypatch, labels=LABELS)
    assert [(row.word, row.note) for row in rows] == [
        ("seven", "88% sure"), ("three", "50% sure"), ("nothing more", ""),
    ]  # fmt: skip
    assert all(len(row.panels) == 5 for row in rows)


def test_an_empty_multiset_has_the_row_in_which_nothing_was_found(monkeypatch) -> None:
    rows = drawn_rows(monkeypatch, trace=glimpse_trace(labels=0))
    assert [row.word for row in rows] == ["nothing more"]


def test_who_never_stopped_has_no_such_row(monkeypatch) -> None:
    rows = drawn_rows(monkeypatch, trace=glimpse_trace(labels=4), labels=LABELS * 2)
    assert [row.word for row in rows] == ["seven", "three"] * 2


def test_rows_make_the_sheet_taller_and_an_answer_too() -> None:
    one, three = (glimpse_strip(PICTURE, glimpse_trace(labels=n), labels=(LABELS * 2)[:n]) for n in (0, 2))
    panel = 40 * (200 // 50)  # enlarged by a whole factor to at most 200 pixels
    assert three.height - one.height == 2 * (panel + GUTTER)
    told = glimpse_strip(PICTURE, glimpse_trace(), labels=LABELS, answer="{seven, three}")
    assert told.height > three.height
    assert one.width > 5 * 200 + 4 * GUTTER + 2 * MARGIN


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


def test_numbers_of_one_place_share_a_disc() -> None:
    blank = Image.new("RGB", (100, 100), (90, 120, 150))
    apart = draw_marks(blank, [Scanpath([(20, 50), (80, 50)])], blank.size)
    together = draw_marks(blank, [Scanpath([(50, 50), (50, 50)])], blank.size)
    coloured = [(np.asarray(each) != np.asarray(blank)).any(-1) for each in (apart, together)]
    assert coloured[0][50, 15:85].all()  # two discs and the line between them
    assert not coloured[1][:, :30].any()
    assert not coloured[1][:, 70:].any()
    assert blank.getcolors() == [(10_000, (90, 120, 150))]  # the picture itself stays


def test_saliency_before_and_after_share_a_scale(monkeypatch) -> None:
    """What is glimpsed away is dark after and was not before; elsewhere a cell keeps its colour."""
    rows = drawn_rows(monkeypatch, labels=LABELS, cells=True)
    before, after = (np.asarray(rows[0].panels[place]) for place in (0, 4))
    assert (after[20, 20] < before[20, 20]).any()  # cell 0 was glimpsed
    assert (after[60, 100] != before[60, 100]).any()  # so was cell 7
    assert (after[140, 20] == before[140, 20]).all()  # cell 15 was not
    trace = glimpse_trace()
    faded = [
        dataclasses.replace(look, weights=look.weights / 2) if look.name in ("saliency", "inhibited") else look
        for look in trace.looks
    ]
    again = drawn_rows(monkeypatch, trace=dataclasses.replace(trace, looks=tuple(faded)), labels=LABELS, cells=True)
    assert np.array_equal(np.asarray(again[0].panels[4]), after)  # only the common peak counts


def test_evidence_is_drawn_with_the_glimpses_alone(monkeypatch) -> None:
    inside = torch.zeros(40, 50, dtype=torch.bool)
    inside[30:38, 5:9] = True
    plain, outlined = (drawn_rows(monkeypatch, labels=LABELS, outline=outline) for outline in ((), Mask(inside)))
    same = [
        np.array_equal(np.asarray(one), np.asarray(other)) for one, other in zip(plain[0].panels, outlined[0].panels)
    ]
    assert same == [True, True, True, False, True]


def test_traces_with_glimpses_are_known(soft_trace) -> None:
    assert has_glimpses(glimpse_trace())
    assert not has_glimpses(soft_trace)


def test_a_report_draws_a_record_label_by_label() -> None:
    info = {"model": "m", "answer": "{three, seven}", "labels": [["seven", 0.875], ["three", 0.5]], "confidence": 0.4}
    page = report_from_records([Record(glimpse_trace(), info, PICTURE)]).html()
    strip = glimpse_strip(PICTURE, glimpse_trace(), labels=LABELS, answer="{three, seven} (40%)")
    assert f'width="{strip.width}" height="{strip.height}"' in page
    assert "{three, seven}" in page
    without = Record(glimpse_trace(), {"answer": "?"}, PICTURE)  # a record of someone else may not tell its labels
    assert "nothing more" not in report_from_records([without]).html()
