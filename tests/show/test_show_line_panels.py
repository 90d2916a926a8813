"""Panels of lines: shared colours, errors that name the line, a word where there is nothing."""

import pytest

from saccade.errors import DataError, ShapeError
from saccade.show.curves import Line, figure_svg, line_panels

TWO = {
    "first": {"a": Line([0, 1], [0.1, 0.2]), "b": Line([0, 1], [0.3, 0.4])},
    "second": {"b": Line([0, 1], [0.5, 0.6])},
}


def test_series_keep_their_colour_across_panels_and_the_y_axis_is_shared():
    _, (first, second) = line_panels(TWO, xlabel="x", ylabel="y")
    colours = {line.get_label(): line.get_color() for line in first.get_lines()}
    assert second.get_lines()[0].get_color() == colours["b"] != colours["a"]
    assert first.get_ylim() == second.get_ylim()
    assert (first.get_title(loc="left"), second.get_xlabel()) == ("first", "x")


def test_one_legend_for_all_panels():
    figure, axes = line_panels(TWO, xlabel="x", ylabel="y", chance={"second": 0.25})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "chance"]
    assert not any(panel.get_legend() for panel in axes)


def test_ticks_labels_and_error_bars():
    lines = {"only": {"a": Line([0, 1], [0.1, 0.2], labels=("p", "q"), spread=(0.01, 0.02))}}
    figure, (axes,) = line_panels(lines, xlabel=["below"], ylabel="y", ticks=("small", "large"))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["small", "large"]
    assert {"p", "q"} <= {text.get_text() for text in axes.texts}
    assert axes.get_xlabel() == "below"
    assert not figure.legends, "one line needs no legend"
    assert figure_svg(figure).startswith("<?xml")


def test_an_empty_panel_says_so():
    _, (axes,) = line_panels({"nothing": {}}, xlabel="x", ylabel="y", empty="no model ships")
    assert [text.get_text() for text in axes.texts] == ["no model ships"]


def test_bad_input():
    with pytest.raises(DataError, match="no panel"):
        line_panels({}, xlabel="x", ylabel="y")
    with pytest.raises(ShapeError, match="'a': y"):
        line_panels({"p": {"a": Line([0, 1], [0.1])}}, xlabel="x", ylabel="y")
    with pytest.raises(ShapeError, match="labels"):
        line_panels({"p": {"a": Line([0, 1], [0.1, 0.2], labels=("one",))}}, xlabel="x", ylabel="y")
