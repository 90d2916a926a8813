"""Pages of HTML in one file: their sections, pictures and live part.

A part of a report that runs: its own markup, style, script and data, allowed by their digests and nothing else.

Blocks of a report that hold pictures, all of them inside the file as data: addresses.

A page of many pictures would be large: those of many colours, such as photographs under maps, are stored as WebP, a
quarter of a PNG and no different to the eye; drawings of few colours stay exact.

Self-contained HTML reports: one file, no network, readable on paper and in the dark.

The page carries its style, its pictures (data: addresses) and a content security policy that forbids everything else:
the style is allowed by its SHA-256, so nothing that slipped into a caption could restyle the page, run or call home.
A report with a live part carries that part's style and script too, allowed in the same way.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from PIL import Image, features

from saccade import __version__
from saccade.atomic import write_text
from saccade.show.overlay import data_url, png_bytes
from saccade.show.report_tables import (
    Cell,
    Code,
    KeyFigures,
    Notes,
    Table,
    escaped,
    inline,
    paragraphs,
    percent,
    source_line,
)
from saccade.show.slot_table import SlotHeat, heat_rules


@dataclass(frozen=True)
class Live:
    """What is put into a page; all of it comes from the package, none of it from a user."""

    markup: str
    style: str
    script: str
    data: str
    """JSON that the script reads; it must not hold ``<``, so that it cannot leave its element."""

    @property
    def head(self) -> str:
        """What goes into the head."""
        return f'<style id="saccade-style">{self.style}</style>'

    @property
    def end(self) -> str:
        """What goes behind everything else, when all that the script wants to find is there."""
        return (
            f'<script type="application/json" id="saccade-data">{self.data}</script>\n'
            f'<script id="saccade-script">{self.script}</script>'
        )


def policy(*styles: str, script: str | None = None) -> str:
    """A content security policy: these styles, this script with a worker of its own, pictures inside the file."""
    runs = "" if script is None else f"; script-src {_digest(script)}; worker-src blob:"
    pictures = "data:" if script is None else "data: blob:"
    return (
        f"default-src 'none'; img-src {pictures}; style-src {' '.join(map(_digest, styles))}{runs}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


Source = Image.Image | bytes | str

_FEW_COLOURS = 256
_QUALITY = 90  # of WebP: 40 dB and more on filmstrips
_WEBP_SIDE = 16_383  # its pixels at most, each way


@dataclass(frozen=True)
class Picture:
    """A picture with a caption and, for those who cannot see it, a description."""

    image: Source
    """A PIL image, the bytes of a PNG or JPEG file, or the text of an SVG."""
    caption: str = ""
    alt: str = ""
    source: str = ""
    dark: Source | None = None
    """The same picture for a dark page; curves come in both."""

    def html(self, notes: Notes) -> str:
        """A figure."""
        caption = f"<figcaption>{inline(self.caption)}</figcaption>" if self.caption else ""
        inside = f'<div class="strip" tabindex="0">{self.tag()}</div>' if _is_strip(self.image) else self.tag()
        return f'<figure class="picture">{inside}{caption}{source_line(self.source)}</figure>'

    def tag(self) -> str:
        """The picture alone."""
        described = escaped(self.alt or self.caption)
        plate = "" if self.dark is not None else ' class="plate"'
        image = f'<img{plate} src="{data_uri(self.image)}" alt="{described}"{_size(self.image)}>'
        if self.dark is None:
            return image
        dark = f'<source media="(prefers-color-scheme: dark)" srcset="{data_uri(self.dark)}">'
        return f"<picture>{dark}{image}</picture>"


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side, as many in a row as fit."""

    pictures: Sequence[Picture]
    caption: str = ""
    source: str = ""
    wide: bool = False
    """Two to a row instead of four: for pictures with small print, such as filmstrips."""

    def html(self, notes: Notes) -> str:
        """A list of figures under one caption."""
        items = "".join(
            f"<li>{picture.tag()}<p>{inline(picture.caption)}</p>{source_line(picture.source)}</li>"
            for picture in self.pictures
        )
        caption = f"<figcaption>{inline(self.caption)}</figcaption>" if self.caption else ""
        kind = "gallery wide" if self.wide else "gallery"
        return f'<figure class="{kind}">{caption}<ul>{items}</ul>{source_line(self.source)}</figure>'


def data_uri(image: Source) -> str:
    """``image`` as a data: address; nothing is fetched when the page is opened."""
    if isinstance(image, Image.Image):
        kind, data = ("webp", _webp_bytes(image)) if _has_many_colours(image) else ("png", png_bytes(image, "small"))
    elif isinstance(image, str):
        kind, data = "svg+xml", image.encode("utf-8", "replace")
    else:
        kind, data = "png" if image.startswith(b"\x89PNG") else "jpeg", image
    return data_url(data, kind)


def _has_many_colours(image: Image.Image) -> bool:
    """Whether a PNG would be large for what can be seen of it, and a WebP can be had instead."""
    return max(image.size) <= _WEBP_SIDE and image.getcolors(_FEW_COLOURS) is None and bool(features.check("webp"))


def _webp_bytes(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=_QUALITY)
    return buffer.getvalue()


def _is_strip(image: Source) -> bool:
    """Whether the picture is so wide that a narrow screen should scroll it instead of shrinking it."""
    return isinstance(image, Image.Image) and image.width > max(860, 2 * image.height)


def _size(image: Source) -> str:
    """Width and height, so that the page does not jump while it loads."""
    return f' width="{image.width}" height="{image.height}"' if isinstance(image, Image.Image) else ""


__all__ = [
    "Block", "Cell", "Code", "Gallery", "KeyFigures", "Picture", "Report", "Section", "SlotHeat",
    "Table", "percent",
]  # fmt: skip


class Block(Protocol):
    """Anything that can stand in a section."""

    def html(self, notes: Notes) -> str:
        """The block as HTML; footnotes go to ``notes``."""
        ...


@dataclass(frozen=True)
class Section:
    """A heading, what there is to say, and what there is to show."""

    title: str
    text: str = ""
    """Paragraphs, split at blank lines; `back-quoted` parts become code."""
    blocks: Sequence[Block] = ()


@dataclass(frozen=True)
class Report:
    """A page: title, lead, sections."""

    title: str
    lead: str = ""
    sections: Sequence[Section] = ()
    blocks: Sequence[Block] = ()
    """Shown before the first section, such as the headline figures."""
    live: Live | None = None
    """Shown before all of that, and running."""
    left_out: str = ""
    """What the page does not show, which its lead says too; for those who made it."""

    def html(self) -> str:
        """The whole page."""
        notes = Notes()
        opening = "".join(block.html(notes) for block in self.blocks)
        body = "".join(_section(number, section, notes) for number, section in enumerate(self.sections, 1))
        style, live = _style(), self.live
        allowed = policy(style) if live is None else policy(style, live.style, script=live.script)
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{allowed}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="saccade {__version__}">
<title>{escaped(self.title)}</title>
<style>{style}</style>
{"" if live is None else live.head}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<div class="page">
{self._contents()}
<main id="main">
<header>
<p class="brand">saccade report</p>
<h1>{inline(self.title)}</h1>
<div class="lead">{paragraphs(self.lead)}</div>
</header>
{"" if live is None else live.markup}
{opening}
{body}
{_footnotes(notes)}
<footer><p>Made by saccade {__version__}. This file is self-contained: it loads nothing from the network.</p></footer>
</main>
</div>
{"" if live is None else live.end}
</body>
</html>
"""

    def save(self, path: str | Path) -> Path:
        """Write the page to ``path``, whole or not at all; an unwritable place is an OutputError."""
        return write_text(Path(path), self.html())

    def _contents(self) -> str:
        if not self.sections:
            return ""
        entries = "".join(
            f'<li><a href="#section-{number}">{inline(section.title)}</a></li>'
            for number, section in enumerate(self.sections, 1)
        )
        return f'<nav aria-label="Contents"><p>Contents</p><ol>{entries}</ol></nav>'


def _section(number: int, section: Section, notes: Notes) -> str:
    blocks = "\n".join(block.html(notes) for block in section.blocks)
    return (
        f'<section id="section-{number}" aria-labelledby="title-{number}"><h2 id="title-{number}">'
        f"{inline(section.title)}</h2>{paragraphs(section.text)}\n{blocks}</section>\n"
    )


def _footnotes(notes: Notes) -> str:
    if not len(notes):
        return ""
    items = "".join(
        f'<li id="note-{number}">{inline(note)} '
        f'<a class="back" href="#ref-{number}" aria-label="back to the number">↩</a></li>'
        for number, note in notes
    )
    return (
        f'<section class="notes" aria-labelledby="notes"><h2 id="notes">Where the numbers come from</h2>'
        f"<ol>{items}</ol></section>\n"
    )


def _style() -> str:
    return files("saccade.show").joinpath("static/report.css").read_text(encoding="utf-8") + heat_rules()
