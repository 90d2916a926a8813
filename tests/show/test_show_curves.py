from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from saccade.errors import MissingExtraError
from saccade.show import colours
from saccade.show.report_sources import course, metrics_with_a_course, training_curves


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


def test_training_curves_draw_what_was_measured():
    axes = training_curves(ROWS, metrics_with_a_course(ROWS)).axes
    assert [panel.get_title(loc="left") for panel in axes] == ["loss", "accuracy"]
    lines = {line.get_label(): line for line in axes[0].get_lines()}
    assert lines["train"].get_xdata().tolist() == [10, 20, 40]
    assert lines["validation"].get_ydata().tolist() == [1.5, 1.2]
    assert [line.get_xdata()[0] for line in axes[0].get_lines() if line.get_gid() == "phase-polish"] == [30]
    assert len(axes) == 2


def test_a_colour_map_of_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="plots"):
        colours.named("viridis")


def test_a_run_is_trained_and_looked_at_without_both_extras(tmp_path: Path) -> None:
    code = f"""
import sys
for name in ("matplotlib", "lightning_fabric", "torchmetrics"):
    sys.modules[name] = None
import saccade
from saccade.families.question import scenes
scenes._SIZES["unlimited"]["val"] = 20
small = ["data.glyphs=pack", "model.config.channels=4", "model.config.hidden=4", "batch_size=8", "log_every=1"]
small += ["phases.0.steps=2", "phases.0.validate_every=2"]
done = saccade.train("soft-mref", out={str(tmp_path / "run")!r}, overrides=small, device="cpu", quiet=True)
saccade.load(done.out).look(saccade.example("digits"), ask=7).save({str(tmp_path / "out")!r})
assert "plots" in saccade.report(done.out).html()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
