"""Pages: escaped, under a policy of their own; scores as tables, runs and records, and what of them is damaged."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
import yaml
from PIL import Image

from saccade.errors import CheckpointError, DataError, MissingExtraError
from saccade.metrics.labels import details_of
from saccade.record import Record
from saccade.show import colours
from saccade.show.report import Code, Figure, Gallery, KeyFigures, Report, Section
from saccade.show.report_sources import (
    course,
    metrics_with_a_course,
    read_metrics,
    report_from_records,
    report_from_run,
    training_curves,
)
from saccade.show.score_tables import confusion_section, score_tables
from saccade.show.tables import Cell, ShownTable
from saccade.trace import AttentionTrace, Look

EVIL = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>&amp;"
VOID = {"meta", "img", "source", "br", "rect", "line"}


class Page(HTMLParser):
    """Tags in order, with attributes, text per tag, and a check that they balance."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data


def html_of(block) -> str:
    """A page with this block alone, without its head."""
    return Report("", blocks=[block]).html().split("</header>")[1]


def full_report(text: str = "plain") -> Report:
    image = Image.new("RGB", (4, 3), "red")
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="3" height="3"><script>alert(1)</script></svg>'
    cell = Cell(0.5, text, text)
    blocks = [
        ShownTable(
            (text, "n"), [(text, cell), (Cell(text, note=text), Cell(2))], caption=text, source=text, best_row=1
        ),
        KeyFigures([(text, cell)]),
        Figure(image, text, text, text),
        Figure(svg, text, text, dark=svg),
        Gallery([Figure(image, text, text, text)], text, text),
        Code(text, text),
    ]
    return Report(text, text, [Section(text, text, blocks), Section(text)], [KeyFigures([(text, cell)])])


def test_the_page_is_balanced_and_has_a_plain_outline():
    page = Page(full_report().html())
    assert page.open == []
    assert [tag for tag, _ in page.tags if tag in ("h1", "h2")] == ["h1", "h2", "h2", "h2"]
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert all(target.startswith("#") and target[1:] in ids for target in targets)
    assert all(attributes.get("alt") for tag, attributes in page.tags if tag == "img")


def test_everything_a_user_can_write_is_escaped():
    page = Page(full_report(EVIL).html())
    assert page.open == []
    assert not any(tag == "script" for tag, _ in page.tags)
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.tags for name in attributes)
    assert page.text.count(EVIL) >= 14  # shown as it was written


def test_nothing_is_loaded_from_anywhere():
    html = full_report(EVIL).html()
    page = Page(html)
    for _, attributes in page.tags:
        for name in ("src", "srcset"):
            assert attributes.get(name, "data:image/").startswith("data:image/")
    assert "http" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", html).replace("http-equiv", "")
    assert "url(" not in html
    assert "@import" not in html


def test_the_policy_allows_this_style_and_nothing_else():
    html = full_report().html()
    style = html.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [a["content"] for t, a in Page(html).tags if t == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert f"style-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert html.index("Content-Security-Policy") < html.index("<style>")


def test_pictures_come_back_from_the_page():
    image = Image.new("RGB", (5, 2), (10, 20, 30))
    html = html_of(Figure(image, "c", "a"))
    assert 'width="5" height="2"' in html
    data = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1])
    assert data.startswith(b"\x89PNG")
    assert html_of(Figure(data, "c")).count(base64.b64encode(data).decode()) == 1
    assert "data:image/jpeg" in html_of(Figure(b"\xff\xd8\xff\xe0", "c"))


def test_text_is_cleaned_and_back_quotes_become_code():
    page = Report("a\x00b\ud800", "run `a < b` now\n\n two \n\n\n").html()
    assert "<h1>a\ufffdb\ufffd</h1>" in page
    assert "<p>run <code>a &lt; b</code> now</p><p>two</p>" in page


RESULT = {
    "model": "m", "data": "csv", "split": "test", "protocol": None, "n": 1055, "seed": 0, "definition": 2,
    "metrics": {"accuracy": 0.5, "accuracy_by_query": {"crown": 0.75, "belly": None}, "length_raw": 8.514},
    "attention": {
        "pointing": 0.4, "deletion": 0.3, "pr_auc": 0.2,
        "by_look": {"gate": {"pointing": 0.1, "iou": 0.05}, "last": {"pointing": 0.2, "iou": 0.25}},
    },
    "baselines": {
        "training_prior": {"accuracy": 0.3},
        "uniform": {"pointing": 0.02, "deletion": 0.35, "pr_auc": 0.02},
        "box_centre_exact": {"pointing": 0.07, "pr_auc": 0.01},
    },
    "intervals": {"accuracy": [0.47, 0.531], "length_raw": [8.1, 8.94], "pointing": [None, None]},
    "counts": {"accuracy": 1055, "pointing": 1055, "deletion": 50, "accuracy_by_query": {"crown": 4}},
}  # fmt: skip


def shown(table: ShownTable) -> list[list[str]]:
    return [[cell.shown if isinstance(cell, Cell) else str(cell) for cell in row] for row in table.rows]


def by_title(tables: list[ShownTable]) -> dict[str, ShownTable]:
    return {table.caption: table for table in tables}


def test_scores_are_compared_among_those_that_have_them() -> None:
    tables = by_title(score_tables(RESULT))
    assert [row[0] for row in tables["answers beside baselines"].rows] == ["model", "training prior"]
    maps = tables["attention beside baselines"]
    assert maps.columns == ("who", "pointing", "deletion ↓", "pr auc")
    assert [row[0] for row in maps.rows] == ["model", "uniform", "box centre exact"]
    assert shown(maps)[2][2] == "–"


def told(classes: int) -> dict:
    """Two answers a class; class 3 is taken for class 5 both times, class 1 for class 0 once."""
    labels = torch.arange(classes).repeat(2)
    said = labels.clone()
    said[3], said[3 + classes], said[1] = min(5, classes - 1), min(5, classes - 1), 0
    half = torch.full((2 * classes,), 0.5)
    return details_of(said, labels, half, half / 2, [f"class {number}" for number in range(classes)])


def test_of_many_classes_the_most_confused_pairs_are_listed() -> None:
    found = told(200)
    assert "matrix" not in found["confusion"]  # too large to write down
    section = confusion_section(found["confusion"], 200)
    assert section.title == "Confusions"
    assert [list(row) for row in section.blocks[0].rows] == [["class 3", "class 5", 2], ["class 1", "class 0", 1]]
    assert "200 classes" in section.text


def test_of_few_classes_the_matrix_is_shown() -> None:
    section = confusion_section(told(6)["confusion"], 6)
    assert section.title == "Confusion matrix"
    assert list(section.blocks[0].rows[3]) == ["class 3", 0, 0, 0, 0, 0, 2]


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
