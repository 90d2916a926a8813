"""Self-contained HTML reports: one file, no network, readable on paper and in the dark.

The page carries its style, its pictures (data: addresses) and a content security policy that forbids everything else:
the style is allowed by its SHA-256, so nothing that slipped into a caption could restyle the page, run or call home.
A report with a live part carries that part's style and script too, allowed in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from saccade import __version__
from saccade.atomic import write_text
from saccade.show.markup import Notes, escaped, inline, paragraphs
from saccade.show.report_live import Live, policy
from saccade.show.report_pictures import Gallery, Picture
from saccade.show.report_tables import Cell, Code, KeyFigures, Table, percent
from saccade.show.slot_html import SlotHeat, heat_rules

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
