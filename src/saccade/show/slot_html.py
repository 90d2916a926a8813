"""Attention over slots as an HTML table: the sentences stay text that can be selected, the cells are coloured.

A page of a report allows no style but its own, so cells there have one of a few classes (:func:`heat_rules`). A
notebook has no style sheet, so cells there carry their colours themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from saccade.show.colours import Rgb, heat, ink_on
from saccade.show.report_tables import Notes, escaped, inline
from saccade.show.slot_table import NEEDED, SlotGrid

LEVELS = 50
"""Colours of cells on a page, beside that of 0."""


@dataclass(frozen=True)
class SlotHeat:
    """A block of a report: sentences × hops."""

    grid: SlotGrid
    caption: str = ""

    def html(self, notes: Notes) -> str:
        """A figure with the table."""
        caption = f"<figcaption>{inline(self.caption)}</figcaption>" if self.caption else ""
        table = _table(self.grid, is_page=True)
        return (
            f'<figure class="table">{caption}<div class="scroll" tabindex="0">{table}</div>'
            f'<p class="source">{escaped(self.grid.legend + self.grid.bar)}</p></figure>'
        )


def slot_html(grid: SlotGrid) -> str:
    """The table for a notebook."""
    return f"{_table(grid, is_page=False)}<small>{escaped(grid.legend + grid.bar)}</small>"


def heat_rules() -> str:
    """The style of coloured cells on a page."""
    colours = heat(np.linspace(0, 1, LEVELS + 1, dtype=np.float32)).round().astype(int).tolist()
    rules = (f".heat-{level}{{{_paint((red, green, blue))}}}" for level, (red, green, blue) in enumerate(colours))
    return "\n".join(rules)


def _table(grid: SlotGrid, *, is_page: bool) -> str:
    heads = "".join(f'<th scope="col"{_number(is_page)}>{escaped(heading)}</th>' for heading in grid.headings)
    body = "".join(_row(grid, row, is_page=is_page) for row in range(len(grid.texts)))
    kind = ' class="slots"' if is_page else ' style="border-collapse:collapse"'
    return f'<table{kind}><thead><tr><th scope="col">sentence</th>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _row(grid: SlotGrid, row: int, *, is_page: bool) -> str:
    needed = row in grid.supporting
    mark = f' title="{NEEDED}"' if needed else ""
    if is_page:
        kind = ' class="needed"' if needed else ""
    else:
        bar = f"border-left:4px solid {'currentColor' if needed else 'transparent'}"
        kind = f' style="text-align:left;font-weight:normal;{bar}"'
    cells = "".join(_cells(grid, row, is_page=is_page))
    return f'<tr><th scope="row"{kind}{mark}>{escaped(grid.texts[row])}</th>{cells}</tr>'


def _cells(grid: SlotGrid, row: int, *, is_page: bool) -> Iterator[str]:
    for column in range(len(grid.headings)):
        weight = float(grid.weights[row, column])
        if is_page:
            level = 0 if grid.scaled is None else round(LEVELS * float(grid.scaled.values[row, column]))
            kind = f' class="num heat-{level}"'
        else:
            kind = f' style="text-align:right;padding:2px 8px;{_paint(grid.fill(row, column))}"'
        yield f'<td{kind} title="{weight:.6g}">{weight:.2f}</td>'


def _number(is_page: bool) -> str:
    return ' class="num"' if is_page else ' style="text-align:right"'


def _paint(fill: Rgb) -> str:
    return f"background:{_hex(fill)};color:{_hex(ink_on(fill))}"


def _hex(colour: Rgb) -> str:
    red, green, blue = colour
    return f"#{red:02x}{green:02x}{blue:02x}"


def slot_figure(caption: str, others: str, grid: SlotGrid, notes: Sequence[str]) -> str:
    """The table of a notebook under ``caption`` and ``others`` (HTML); the texts of ``notes`` stay texts."""
    remarks = "".join(f"<div><small>{escaped(note)}</small></div>" for note in notes)
    beside = f" <small>({others})</small>" if others else ""
    return f'<figure style="margin:0"><figcaption>{caption}{beside}</figcaption>{slot_html(grid)}{remarks}</figure>'
