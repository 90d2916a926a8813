from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from PIL import Image

from saccade.show.report import Code, Gallery, KeyFigures, Picture, Report, Section
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
