"""Curves from hand-made records: a line for each system, the same colour everywhere, nothing where nothing is known."""

from types import SimpleNamespace

import pytest

from fake_runs import fake_run
from saccade.families.question.reproduction.figures import SERIES, penalty_figure, recall_figure, scale_figure
from saccade.families.question.reproduction.table1 import SETTINGS, Table1


def test_the_scale_figure_has_a_line_a_system_and_says_where_there_is_none():
    table = Table1([fake_run("soft", accuracy=0.8), fake_run("soft", seed=1, accuracy=0.9), fake_run("hattnet")])
    mref, mdist, mbg = scale_figure(table, SETTINGS[0]).draw("light").axes
    lines = {line.get_label(): line for line in mref.get_lines() if not line.get_label().startswith("_")}
    assert list(lines) == ["SOFT", "HAttNet"]
    assert lines["SOFT"].get_ydata().tolist() == pytest.approx([0.85] * 5)
    assert [text.get_text() for text in mdist.texts] == ["no run"]
    assert "other photographs" in mbg.get_title(loc="left")
    assert scale_figure(table, SETTINGS[1]) is None


def test_a_system_has_the_same_colour_in_every_figure():
    def colour(*runs):
        (axes, *_) = scale_figure(Table1(runs, ("mref",)), SETTINGS[0]).draw("light").axes
        return {line.get_label(): line.get_color() for line in axes.get_lines()}["HAttNet"]

    assert colour(fake_run("hattnet")) == colour(fake_run("soft"), fake_run("hattnet"))
    assert len(set(SERIES)) == len(SERIES)


def test_no_curve_without_models_or_prices():
    assert recall_figure([], ("mref",)) is None
    assert penalty_figure([]) is None
    assert penalty_figure([SimpleNamespace(penalty=0.1), SimpleNamespace(penalty=0.2)]) is None
