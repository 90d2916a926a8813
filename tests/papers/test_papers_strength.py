"""True-positive strength under two projections, by hand and of a shipped model."""

from __future__ import annotations

import pytest
import torch

from saccade import geometry
from saccade.papers.results import recorded_runs
from saccade.papers.tables import strength_table, strengths, zero_border
from saccade.predict import load


def test_beyond_the_outermost_cell_a_map_falls_to_zero() -> None:
    """Cells of 4 pixels, centred at 4 and 8: what is extended stays 1; else pixel 0 has an eighth a side."""
    frame = geometry.scale_shift((4.0, 4.0), (2.0, 2.0))
    even = torch.ones(1, 2, 2)
    extended, ending = geometry.project(even, frame, (12, 12)), zero_border(even, frame, (12, 12))
    assert extended.min() == extended.max() == 1
    assert ending[0, 5, 5] == pytest.approx(1)
    assert ending[0, 0, 0] == pytest.approx(0.125**2)
    assert 0 < float(ending.mean()) < 1


def test_one_map_has_equal_product_and_last_and_gates_have_not() -> None:
    soft, sparse = (strengths(load(f"{name}-mref", "cpu"), 40) for name in ("soft", "hattnet-ctx-sparse"))
    assert set(soft) == {f"{way}/{which}" for way in ("edge_extended", "zero_border") for which in ("product", "last")}
    assert soft["edge_extended/product"] == pytest.approx(soft["edge_extended/last"])
    assert soft["zero_border/last"] > 1.1 * soft["edge_extended/last"]
    assert sparse["edge_extended/product"] > 0.5 > sparse["edge_extended/last"], "its gates do the work"


def test_the_recorded_strengths_are_those_of_the_tables() -> None:
    rows = {row[0]: row[1:] for row in strength_table().rows}
    recorded = recorded_runs()["soft-mref"].scores["strength/zero_border/product"].value
    assert rows["soft-mref"][2] == f"{100 * recorded:.1f}"
