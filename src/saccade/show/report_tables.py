"""Tables, bars and key figures of a page, and the text in them.

Text into safe HTML, and the footnotes that say where each number came from.

Blocks of a report that hold numbers and words: tables, headline figures, bars, commands.

A number is a :class:`Cell`: its exact value, the text that is shown, and a note that says where it came from (n, split,
seed, interval, source), which appears on hover and again in the footnotes, so that it survives printing.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_CODE = re.compile("`([^`]+)`")


def escaped(text: object) -> str:
    """``text`` so that it can stand anywhere in a page, inside quotes too; control characters become �."""
    return html.escape(_UNWANTED.sub("\ufffd", str(text)), quote=True)


def inline(text: str) -> str:
    """Escaped text in which `back-quoted` parts become code."""
    return _CODE.sub(r"<code>\1</code>", escaped(text))


def paragraphs(text: str) -> str:
    """Escaped paragraphs, split at blank lines."""
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return "".join(f"<p>{inline(part)}</p>" for part in parts if part)


class Notes:
    """The footnotes of one page, numbered as they first appear; equal notes share a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def reference(self, note: str) -> str:
        """The raised number that leads to ``note``; nothing for an empty one."""
        if not note.strip():
            return ""
        first_time = note not in self._numbers
        number = self._numbers.setdefault(note, len(self._numbers) + 1)
        anchor = f' id="ref-{number}"' if first_time else ""
        return f'<sup><a class="ref"{anchor} href="#note-{number}" title="{escaped(note)}">{number}</a></sup>'

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter((number, note) for note, number in self._numbers.items())

    def __len__(self) -> int:
        return len(self._numbers)


Value = str | int | float | bool | None

DASH = "–"
"""What stands where there is no value."""
NO_VALUE = "not measured, not published, or not defined here"


@dataclass(frozen=True)
class Cell:
    """One value with what is shown for it and where it came from."""

    value: Value
    text: str = ""
    """What is shown; by default the value in a plain format."""
    note: str = ""
    """Provenance: n, split, seed, interval, where from."""

    @property
    def shown(self) -> str:
        """The text for this cell."""
        return self.text or _plain(self.value)

    @property
    def is_number(self) -> bool:
        """Whether the cell is set as a number: to the right, in figures of equal width."""
        return isinstance(self.value, (int, float)) and not isinstance(self.value, bool)

    @property
    def is_missing(self) -> bool:
        """Whether a dash stands for the value, alone or before what was published instead: ``– (18.93)``."""
        return self.shown.split(" ")[0] == DASH

    def html(self, notes: Notes) -> str:
        """The text with its footnote number."""
        return f"{inline(self.shown)}{notes.reference(self.note)}"


def percent(value: float | None, *, note: str = "") -> Cell:
    """A fraction shown in percent: ``percent(0.979)`` reads 97.9 %."""
    if value is None or not math.isfinite(value):
        return Cell(value, note=note)
    return Cell(value, f"{100 * value:.1f}\u202f%", note)


@dataclass(frozen=True)
class Table:
    """Rows under columns; numbers line up, the best row is set off."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | Value]]
    caption: str = ""
    source: str = ""
    """Where the whole table comes from, in a line under it."""
    best_row: int | None = None
    """Index of the row to set off."""
    note: str = ""
    """What a reader must know of all of it, in a line under it."""
    dash: str = NO_VALUE
    """What it means that a value is missing, in a line under a table that lacks one."""

    def html(self, notes: Notes) -> str:
        """The table, able to scroll sideways on a narrow screen."""
        rows = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]
        numeric = [
            any(row[index].is_number for row in rows)
            and all(row[index].is_number or not row[index].value for row in rows)
            for index in range(len(self.columns))
        ]
        classes = [' class="num"' if is_number else "" for is_number in numeric]
        head = "".join(
            f'<th scope="col"{kind}>{inline(name)}</th>' if name else "<td></td>"
            for name, kind in zip(self.columns, classes)
        )
        body = "".join(self._row(row, classes, notes, best=index == self.best_row) for index, row in enumerate(rows))
        caption = f"<caption>{inline(self.caption)}</caption>" if self.caption else ""
        lacks_one = any(cell.is_missing for row in rows for cell in row)
        missing = note_line(f"{DASH} {self.dash}") if lacks_one else ""
        return (
            f'<figure class="table"><div class="scroll" tabindex="0"><table>{caption}<thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>{note_line(self.note)}{missing}{source_line(self.source)}</figure>"
        )

    def _row(self, row: Sequence[Cell], classes: Sequence[str], notes: Notes, *, best: bool) -> str:
        cells = [f'<th scope="row"{classes[0]}>{row[0].html(notes)}</th>'] if row else []
        for cell, kind in zip(row[1:], classes[1:]):
            exact = f' data-value="{escaped(cell.value)}"' if cell.is_number else ""
            hover = f' title="{escaped(cell.note)}"' if cell.note else ""
            cells.append(f"<td{kind}{exact}{hover}>{cell.html(notes)}</td>")
        mark = ' class="best"' if best else ""
        return f"<tr{mark}>{''.join(cells)}</tr>"


@dataclass(frozen=True)
class KeyFigures:
    """A few headline numbers, large, each under its label."""

    figures: Sequence[tuple[str, Cell]]

    def html(self, notes: Notes) -> str:
        """A definition list set as tiles."""
        tiles = (f"<div><dt>{inline(label)}</dt><dd>{cell.html(notes)}</dd></div>" for label, cell in self.figures)
        return f'<dl class="key-figures">{"".join(tiles)}</dl>'


@dataclass(frozen=True)
class Code:
    """A command to copy, one a line."""

    command: str
    caption: str = ""

    def html(self, notes: Notes) -> str:
        """The command in a box of its own."""
        caption = f"<figcaption>{inline(self.caption)}</figcaption>" if self.caption else ""
        command = f'<pre tabindex="0"><code>{escaped(self.command.strip())}</code></pre>'
        return f'<figure class="code">{caption}{command}</figure>'


def note_line(note: str) -> str:
    """The small line under a table that says how to read it."""
    return f'<p class="source">{inline(note)}</p>' if note else ""


def source_line(source: str) -> str:
    """The small line under a figure that says where it comes from."""
    return f'<p class="source">Source: {inline(source)}</p>' if source else ""


def _plain(value: Value) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")  # thin spaces, read alike everywhere
    if isinstance(value, float):
        return f"{value:.4g}"
    return value
