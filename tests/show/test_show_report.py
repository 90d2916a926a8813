"""Pages: balanced, escaped, under a policy of their own; and what evaluate measured as tables."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import torch
from PIL import Image

from saccade.metrics.labels import details_of
from saccade.show.report import Code, Gallery, KeyFigures, Picture, Report, Section
from saccade.show.score_tables import confusion_section, score_tables
from saccade.show.tables import Cell, Table

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
        Table((text, "n"), [(text, cell), (Cell(text, note=text), Cell(2))], caption=text, source=text, best_row=1),
        KeyFigures([(text, cell)]),
        Picture(image, text, text, text),
        Picture(svg, text, text, dark=svg),
        Gallery([Picture(image, text, text, text)], text, text),
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
    html = html_of(Picture(image, "c", "a"))
    assert 'width="5" height="2"' in html
    data = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1])
    assert data.startswith(b"\x89PNG")
    assert html_of(Picture(data, "c")).count(base64.b64encode(data).decode()) == 1
    assert "data:image/jpeg" in html_of(Picture(b"\xff\xd8\xff\xe0", "c"))


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


def shown(table: Table) -> list[list[str]]:
    return [[cell.shown if isinstance(cell, Cell) else str(cell) for cell in row] for row in table.rows]


def by_title(tables: list[Table]) -> dict[str, Table]:
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
