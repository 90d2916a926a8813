"""Self-contained HTML pages: one file, no network, readable on paper and in the dark.

A page's content security policy allows its style, and the script of a live part, by their SHA-256 and forbids
everything else: nothing in a caption can run or call home.

All HTML is written by the templates beside this file. They escape what they insert; ``of_the_package`` lets through
what comes from the package itself.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from PIL import Image, features

from saccade import __version__
from saccade.files import write_text
from saccade.show.overlay import data_url, png_bytes
from saccade.show.slot_table import NEEDED, SlotHeat, heat_rules, style_of
from saccade.show.tables import Cell, ShownTable

Source = Image.Image | bytes | str
"""A PIL image, the bytes of a PNG or JPEG file, or the text of an SVG."""


@dataclass(frozen=True)
class Figure:
    """A picture with a caption and, for those who cannot see it, a description."""

    image: Source
    caption: str = ""
    alt: str = ""
    source: str = ""
    dark: Source | None = None
    """The same picture for a dark page; curves come in both."""

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height where they are known, so that the page does not jump while it loads."""
        return self.image.size if isinstance(self.image, Image.Image) else None

    @property
    def is_strip(self) -> bool:
        """Whether it is so wide that a narrow screen should scroll it instead of shrinking it."""
        return self.size is not None and self.size[0] > max(860, 2 * self.size[1])


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side, as many in a row as fit."""

    pictures: Sequence[Figure]
    caption: str = ""
    source: str = ""
    wide: bool = False
    """Two to a row instead of four: for pictures with small print, such as filmstrips."""


@dataclass(frozen=True)
class KeyFigures:
    """A few headline numbers, large, each under its label."""

    figures: Sequence[tuple[str, Cell]]


@dataclass(frozen=True)
class Code:
    """A command to copy, one a line."""

    command: str
    caption: str = ""


Block = ShownTable | KeyFigures | Code | Figure | Gallery | SlotHeat


@dataclass(frozen=True)
class Section:
    """A heading, what there is to say, and what there is to show."""

    title: str
    text: str = ""
    """Paragraphs, split at blank lines; `back-quoted` parts become code."""
    blocks: Sequence[Block] = ()


@dataclass(frozen=True)
class Live:
    """What runs in a page; all of it comes from the package."""

    markup: str
    style: str
    script: str
    data: str
    """JSON that the script reads; it must not hold ``<``, so that it cannot leave its element."""


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
    """A sentence on what was left out. It is part of the lead and is returned to the caller."""

    def html(self) -> str:
        """The whole page."""
        style, live = _style(), self.live
        allowed = policy(style) if live is None else policy(style, live.style, script=live.script)
        return render("report.html", page=self, live=live, style=style, policy=allowed)

    def save(self, path: str | Path) -> Path:
        """Write the page to ``path``, whole or not at all; an unwritable place is an OutputError."""
        return write_text(Path(path), self.html())


def live_page(title: str, live: Live, policy: str) -> str:
    """A page that is ``live`` alone."""
    return render("page.html", page={"title": title}, live=live, policy=policy)


def policy(*styles: str, script: str | None = None) -> str:
    """A content security policy: these styles, this script with a worker of its own, pictures inside the file."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (*styles, script or "")]
    *allowed, runs = (f"'sha256-{digest}'" for digest in digests)
    pictures, scripts = "data:", ""
    if script is not None:
        pictures, scripts = "data: blob:", f"; script-src {runs}; worker-src blob:"
    return (
        f"default-src 'none'; img-src {pictures}; style-src {' '.join(allowed)}{scripts}; "
        "base-uri 'none'; form-action 'none'"
    )


_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_CODE = re.compile("`([^`]+)`")


def render(template: str, **values: Any) -> str:
    """The text of a template with ``values`` in it; control characters become �."""
    return _UNWANTED.sub("\ufffd", _templates().get_template(template).render(notes=[], **values))


@lru_cache(maxsize=1)
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("saccade.show"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, extensions=["jinja2.ext.do"],
    )  # fmt: skip
    templates.globals.update(version=__version__, needed_words=NEEDED)
    templates.filters.update(
        data_uri=data_uri, inline=_inline, kind=lambda block: type(block).__name__, of_the_package=Markup,
        paragraphs=_paragraphs, style_of=style_of,
    )  # fmt: skip
    return templates


def _inline(text: str) -> Markup:
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 (escaped in this line)


def _paragraphs(text: str) -> Markup:
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return Markup("").join(Markup("<p>{}</p>").format(_inline(part)) for part in parts if part)


@lru_cache(maxsize=1)
def _style() -> str:
    return files("saccade.show").joinpath("templates/report.css").read_text(encoding="utf-8") + heat_rules()


_FEW_COLOURS = 256
_QUALITY = 90  # of WebP: 40 dB and more on filmstrips
_WEBP_SIDE = 16_383  # its pixels at most, each way


def data_uri(image: Source) -> str:
    """``image`` as a data: address.

    Pictures of many colours are stored as WebP, a quarter of a PNG and no different to the eye; drawings of few colours
    stay exact.
    """
    if isinstance(image, str):
        return data_url(image.encode("utf-8", "replace"), "svg+xml")
    if isinstance(image, bytes):
        return data_url(image, "png" if image.startswith(b"\x89PNG") else "jpeg")
    has_few_colours = image.getcolors(_FEW_COLOURS) is not None
    if has_few_colours or max(image.size) > _WEBP_SIDE or not features.check("webp"):
        return data_url(png_bytes(image, optimize=True))
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=_QUALITY)
    return data_url(buffer.getvalue(), "webp")
