"""Without matplotlib (extra ``plots``) everything works but curves and colour maps by name, which say so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from saccade.errors import MissingExtraError
from saccade.show import colours, curves
from saccade.show.report_sources import report_from_run

ROWS = [{"step": step, "phase": "main", "kind": "train", "values": {"loss": 1 / step}} for step in (1, 2, 3)]


def test_a_report_says_that_curves_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "config.yaml").write_text("recipe: {name: x}\n")
    assert "Over training steps" in report_from_run(tmp_path).html()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    html = report_from_run(tmp_path).html()
    assert "plots" in html
    assert "Over training steps" not in html


@pytest.mark.parametrize("draw", [lambda: colours.named("viridis"), lambda: curves.training_curves(ROWS)])
def test_what_needs_it_names_the_extra(draw, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="plots"):
        draw()


def test_a_run_is_trained_and_looked_at_without_both_extras(tmp_path: Path) -> None:
    code = f"""
import sys
for name in ("matplotlib", "lightning_fabric", "torchmetrics"):
    sys.modules[name] = None
import saccade
small = ["data.glyphs=pack", "model.config.channels=4", "model.config.hidden=4", "batch_size=8", "log_every=1"]
small += ["phases.0.steps=2", "phases.0.validate_every=1"]
done = saccade.train("soft-mref", out={str(tmp_path / "run")!r}, overrides=small, device="cpu", quiet=True)
saccade.load(done.out).look(saccade.example("digits"), ask=7).save({str(tmp_path / "out")!r})
assert "plots" in saccade.report(done.out).html()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
