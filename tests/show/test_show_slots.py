"""Looks over slots as one table: its numbers, its colours, and the HTML of pages and notebooks."""

from __future__ import annotations

import numpy as np
import torch

from saccade.show.report import Report
from saccade.show.slot_table import LEVELS, SlotHeat, slot_grid, slot_table
from saccade.trace import Look

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
