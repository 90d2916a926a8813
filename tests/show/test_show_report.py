from __future__ import annotations

import base64
import hashlib
import io
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
from PIL import Image

from saccade.show import report
from saccade.show.overlay import png_bytes
from saccade.show.report import Code, Gallery, KeyFigures, Picture, Report, Section
from saccade.show.tables import Cell, Table, percent

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


def test_numbers_keep_their_exact_value_beside_the_text():
    html = html_of(Table(("model", "score"), [("soft", percent(0.97891, note="n = 10,000"))]))
    assert "97.9\u202f%" in html
    assert 'data-value="0.97891"' in html
    assert 'title="n = 10,000"' in html


def test_a_dash_is_explained_under_the_table_that_has_one():
    line = '<p class="source">– not measured, not published, or not defined here</p>'
    for lacking in (None, float("nan"), "–", "– (18.93)", percent(None)):
        assert html_of(Table(("a", "b"), [("x", lacking), ("y", None)])).count(line) == 1
    assert line not in html_of(Table(("a", "b"), [("x", 0), ("y", "0.5–1")]))
    assert '<p class="source">– not set</p>' in html_of(Table(("a",), [(None,)], dash="not set"))


def test_pictures_come_back_from_the_page():
    image = Image.new("RGB", (5, 2), (10, 20, 30))
    html = html_of(Picture(image, "c", "a"))
    assert 'width="5" height="2"' in html
    data = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1])
    assert data.startswith(b"\x89PNG")
    assert html_of(Picture(data, "c")).count(base64.b64encode(data).decode()) == 1
    assert "data:image/jpeg" in html_of(Picture(b"\xff\xd8\xff\xe0", "c"))


def kept(image: Image.Image) -> bytes:
    """The file that a page holds of a picture."""
    return base64.b64decode(re.search(r"base64,([^\"]+)", html_of(Picture(image, "c")))[1])


def test_photographs_are_kept_small_and_look_the_same(monkeypatch):
    """Smooth colours with grain on them, which is what a PNG cannot shrink."""
    y, x = np.mgrid[:200, :300]
    smooth = np.stack([x * 0.8, y, 255 - x * 0.5], axis=-1)  # (H,W,3)
    pixels = (smooth + np.random.default_rng(0).normal(0, 3, smooth.shape)).clip(0, 255).astype(np.uint8)
    picture = Image.fromarray(pixels)
    data = kept(picture)
    assert data[:4] + data[8:12] == b"RIFFWEBP"
    assert 3 * len(data) < len(png_bytes(picture))
    shown = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), dtype=float)
    assert np.abs(shown - pixels).mean() < 4  # less than a sixtieth of the range, grain included
    for name, value in (("_WEBP_SIDE", 299), ("features", SimpleNamespace(check=lambda feature: False))):
        with monkeypatch.context() as patch:
            patch.setattr(report, name, value)
            assert kept(picture) == png_bytes(picture, optimize=True)  # too wide for the format, or a Pillow without it


def test_text_is_cleaned_and_back_quotes_become_code():
    page = Report("a\x00b\ud800", "run `a < b` now\n\n two \n\n\n").html()
    assert "<h1>a\ufffdb\ufffd</h1>" in page
    assert "<p>run <code>a &lt; b</code> now</p><p>two</p>" in page
