"""Pages of runs and records: curves, settings, strips, and what is damaged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from PIL import Image

from saccade.errors import CheckpointError, DataError, MissingExtraError
from saccade.record import Record
from saccade.show import colours
from saccade.show.report_sources import (
    course,
    metrics_with_a_course,
    read_metrics,
    report_from_records,
    report_from_run,
    training_curves,
)
from saccade.trace import AttentionTrace, Look


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


def write_run(folder, rows=None, settings=None):
    folder.mkdir(exist_ok=True)
    recipe = {
        "name": "soft-mref",
        "title": "SOFT <on> MREF",
        "seed": 3,
        "phases": [{"steps": 40}, {"steps": 2}],
        "x": [],
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings or {"recipe": recipe, "run": {"torch": None}}))
    rows = rows or [
        {"step": 10, "phase": "main", "kind": "train", "values": {"loss": 2.0}},
        {"step": 20, "phase": "main", "kind": "validation", "values": {"loss": 1.0, "macro_f1": 0.9}},
        {"step": 30, "phase": "main", "kind": "validation", "values": {"loss": 1.5, "macro_f1": 0.8}},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_run_tells_its_best_and_last_values(tmp_path):
    html = report_from_run(write_run(tmp_path / "run")).html()
    assert "SOFT &lt;on&gt; MREF" in html
    assert "Run <code>run</code> of recipe <code>soft-mref</code>, seed 3." in html
    results = html.split('<h2 id="title-1">Results')[1].split("</table>")[0]
    rows = [row.split("</tr>")[0] for row in results.split("<tr>")[2:]]
    assert 'data-value="1.0"' in rows[0]  # the lowest loss, from validation, at step 20
    assert 'data-value="20"' in rows[0]
    assert 'data-value="1.5"' in rows[0]  # the last
    assert 'data-value="0.9"' in rows[1]  # the highest score
    assert html.count("– not set</p>") == 1  # of run.torch
    assert "data:image/svg+xml" in html


def test_records_become_filmstrips_and_tables(soft_trace):
    hop = Look("hop", "slots", "multiplier", torch.tensor([[0.3, 0.7]]), "softmax")
    seen = Record(
        soft_trace,
        {"model": "soft-mref", "question": "<7>?", "answer": "red", "confidence": 0.98, "seconds": 0.01, "nested": {}},
        Image.new("RGB", (100, 100)),
    )
    read = Record(
        AttentionTrace((hop,)),
        {"question": "where?", "answer": "home", "sentences": ["a", "b"], "supporting": [1]},
    )
    report = report_from_records([seen, read, Record(soft_trace)])
    assert [section.title for section in report.sections] == ["<7>? → red", "where? → home", "Record 3"]
    html = report.html()
    assert "3 answers" in html
    assert "by soft-mref" in html
    assert html.count("data:image/") == 1
    assert '<th scope="row" class="needed" title="the answer needs it">b</th>' in html
    assert 'title="0.7">0.70</td>' in html
    assert "98.0\u202f%" in html
    assert "&lt;7&gt;? → red" in html
    assert "soft (soft, softmax)" in html
    assert "nested" not in html


SOFT = Look("hop", "soft", "multiplier", torch.full((1, 2, 2), 0.25), "softmax", torch.eye(2, 3).double())
WORDS = Look("word", "soft", "multiplier", torch.full((1, 2, 2, 2), 0.25), "softmax", torch.eye(2, 3).double(),
             emits=torch.tensor([[1, 2]]))  # fmt: skip
SLOTS = Look("slot", "slots", "multiplier", torch.full((1, 2), 0.5), "softmax")


@pytest.mark.parametrize(
    ("look", "info"),
    [
        (SOFT, {"alternatives": [["a"]]}),
        (WORDS, {"words": [{"word": "a", "log_probability": "x"}]}),
        (SLOTS, {"sentences": ["a", "b"], "supporting": 5}),
    ],
)
def test_a_record_of_another_shape_is_one_error(look, info):
    record = Record(AttentionTrace((look,), image_size=torch.tensor([[2, 2]])), info, Image.new("RGB", (2, 2)))
    with pytest.raises(DataError, match="record 1"):
        report_from_records([record])


@pytest.mark.parametrize("text", ["[" * 5000, "!!python/name:os.system ''", None])
def test_settings_that_are_missing_or_not_plain_are_one_error(tmp_path, text):
    run = write_run(tmp_path / "run")
    (run / "config.yaml").unlink() if text is None else (run / "config.yaml").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.yaml"):
        report_from_run(run)


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"step": 1e400, "values": {}}',
        '{"step": 40, "va',
    ],
)
def test_a_damaged_line_of_metrics_is_one_error(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{line}\n{{"step": 1, "values": {{}}}}\n')
    with pytest.raises(CheckpointError, match="line 1 is damaged"):
        read_metrics(path)
    path.write_text("\n")
    with pytest.raises(CheckpointError):
        read_metrics(path)
