from __future__ import annotations

import subprocess
import sys

import pytest
from PIL import Image

from saccade.errors import DataError, OutputError, ShapeError
from saccade.show.curves import (
    accuracy_by_scale,
    course,
    figure_svg,
    metrics_with_a_course,
    precision_recall_curves,
    training_curves,
    write_figure,
)


def row(step, kind, phase="main", **values):
    return {"step": step, "phase": phase, "kind": kind, "values": values}


ROWS = [
    row(10, "train", loss=2.0),
    row(20, "train", loss=1.0),
    row(20, "validation", accuracy=0.5, loss=1.5),
    row(30, "train", phase="polish", loss=float("nan")),
    row(40, "validation", phase="polish", accuracy=0.7, loss=1.2),
    row(40, "train", phase="polish", loss=0.5, once=1.0, text="x"),
    row(20, "validation", accuracy=0.6),  # step 20 again, after a resume
]


def test_course_sorts_keeps_the_last_and_drops_what_is_no_number():
    assert course(ROWS, "loss", "train") == [(10, 2.0), (20, 1.0), (40, 0.5)]
    assert course(ROWS, "accuracy", "validation") == [(20, 0.6), (40, 0.7)]
    assert course(ROWS, "text", "train") == []


def test_the_loss_comes_first_and_single_points_are_no_curve():
    assert metrics_with_a_course([row(1, "train", b=1), row(2, "train", b=2, loss=1), row(3, "train", loss=1)]) == [
        "loss",
        "b",
    ]
    assert metrics_with_a_course(ROWS) == ["loss", "accuracy"]


def test_training_curves_draw_what_was_measured():
    figure, axes = training_curves(ROWS)
    assert [panel.get_title(loc="left") for panel in axes] == ["loss", "accuracy"]
    lines = {line.get_label(): line for line in axes[0].get_lines()}
    assert lines["train"].get_xdata().tolist() == [10, 20, 40]
    assert lines["validation"].get_ydata().tolist() == [1.5, 1.2]
    assert [line.get_xdata()[0] for line in axes[0].get_lines() if line.get_gid() == "phase-polish"] == [30]
    assert len(figure.axes) == 2


def test_training_curves_errors():
    with pytest.raises(DataError, match="no metric"):
        training_curves([row(1, "train", loss=1.0)])
    with pytest.raises(DataError, match="'acuracy'"):
        training_curves(ROWS, names=["acuracy"])


def test_precision_recall():
    _, axes = precision_recall_curves({"soft": ([0, 0.5, 1], [1, 0.8, 0.1])})
    assert axes.get_lines()[0].get_ydata().tolist() == [1, 0.8, 0.1]
    with pytest.raises(ShapeError, match="soft"):
        precision_recall_curves({"soft": ([0, 1], [1])})


def test_accuracy_by_scale_has_a_bar_a_model_in_each_bin():
    _, axes = accuracy_by_scale({"soft": [0.8, 0.9], "ctx": [0.95, 0.99]}, edges=(0.5, 1, 1.5), theme="dark")
    assert [bar.get_height() for bar in axes.patches] == [0.8, 0.9, 0.95, 0.99]
    centres = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    assert centres == pytest.approx([-0.2, 0.8, 0.2, 1.2])  # the bins lie at 0 and 1
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.5–1", "1–1.5"]
    with pytest.raises(ShapeError, match="accuracy of 'soft'"):
        accuracy_by_scale({"soft": [0.8]}, edges=(0, 1, 2))


def test_figures_are_written_by_their_ending(tmp_path):
    figure, _ = training_curves(ROWS)
    assert Image.open(write_figure(figure, tmp_path / "a.png")).format == "PNG"
    assert "<svg" in write_figure(figure, tmp_path / "a.svg").read_text()
    with pytest.raises(DataError, match=r"\.png or \.svg"):
        write_figure(figure, tmp_path / "a.pdf")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        write_figure(figure, tmp_path / "file" / "a.png")


def test_svg_is_reproducible():
    assert figure_svg(training_curves(ROWS)[0]) == figure_svg(training_curves(ROWS)[0])


def test_a_dark_figure_is_dark_on_paper_too(tmp_path):
    figure, _ = precision_recall_curves({"soft": ([0, 1], [1, 0])}, theme="dark")
    assert Image.open(write_figure(figure, tmp_path / "dark.png")).convert("L").getpixel((1, 1)) < 40


def test_pictures_and_reports_do_not_import_matplotlib():
    code = (
        "import sys, saccade.show.filmstrip, saccade.show.slot_table, saccade.show.sheets;"
        "import saccade.show.report_sources; sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
