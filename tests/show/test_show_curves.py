from __future__ import annotations

import subprocess
import sys

from saccade.show.curves import course, figure_svg, metrics_with_a_course, training_curves


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


def test_svg_is_reproducible():
    assert figure_svg(training_curves(ROWS)[0]) == figure_svg(training_curves(ROWS)[0])


def test_pictures_and_reports_do_not_import_matplotlib():
    code = (
        "import sys, saccade.show.filmstrip, saccade.show.slot_table, saccade.show.sheets;"
        "import saccade.show.report_sources; sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
