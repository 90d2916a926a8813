"""The one type of table: for pages, for the terminal, and for documents as Markdown. It needs no torch.

A number is a :class:`Cell`: its exact value, the text that is shown, and a note on where it came from (n, split, seed,
interval, source), shown on hover and in the footnotes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Value = str | int | float | bool | None
DASH = "–"
"""What stands where there is no value."""


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
        value = self.value
        if self.text or isinstance(value, str):
            return self.text or str(value)
        if value is None or math.isnan(value):
            return DASH
        if isinstance(value, bool):
            return "yes" if value else "no"
        # thin spaces, read alike everywhere
        return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else f"{value:.4g}"

    @property
    def is_number(self) -> bool:
        """Whether the cell is set as a number: to the right, in figures of equal width."""
        return isinstance(self.value, (int, float)) and not isinstance(self.value, bool)


ShownRow = Sequence[Cell | Value]


def spaced(name: str) -> str:
    """A name in words, which can be wrapped in a narrow column."""
    return name.replace("_", " ")


def percent(value: float | None, *, note: str = "") -> Cell:
    """A fraction shown in percent: ``percent(0.979)`` reads 97.9 %."""
    if value is None or not math.isfinite(value):
        return Cell(value, note=note)
    return Cell(value, f"{100 * value:.1f}\u202f%", note)


@dataclass(frozen=True)
class ShownTable:
    """Rows under columns; on a page numbers line up and the best row is set off."""

    columns: Sequence[str]
    rows: Sequence[ShownRow]
    """A text may have several lines."""
    caption: str = ""
    note: str = ""
    """What a reader must know of all of it, in a line under it."""
    source: str = ""
    """Where the whole table comes from, in a line under it."""
    best_row: int | None = None
    """Index of the row to set off."""
    dash: str = "not measured, not published, or not defined here"
    """What it means that a value is missing, in a line under a table that lacks one."""

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, every value in a cell."""
        return [[value if isinstance(value, Cell) else Cell(value) for value in row] for row in self.rows]

    @property
    def texts(self) -> list[list[str]]:
        """The rows as they are shown, without the narrow space of pages, which many a terminal has no sign for."""
        return [[cell.shown.replace("\u202f", "") for cell in row] for row in self.cells]

    @property
    def number_columns(self) -> list[bool]:
        """Whether each column holds numbers and nothing else."""
        columns = list(zip(*self.cells)) or [()] * len(self.columns)
        return [
            any(cell.is_number for cell in column) and all(cell.is_number or not cell.value for cell in column)
            for column in columns
        ]

    @property
    def lacks_a_value(self) -> bool:
        """Whether a dash stands for some value, alone or before what was published instead: ``– (18.93)``."""
        return any(cell.shown.split(" ")[0] == DASH for row in self.cells for cell in row)

    def markdown(self) -> str:
        r"""The rows and columns as Markdown, without the caption.

        >>> print(ShownTable(("a", "b"), [("1", "2\n3")]).markdown(), end="")
        | a | b |
        |---|---|
        | 1 | 2<br>3 |
        """
        head, *body = (
            "| " + " | ".join(text.replace("\n", "<br>") for text in line) + " |\n"
            for line in (self.columns, *self.texts)
        )
        return head + "|" + "---|" * len(self.columns) + "\n" + "".join(body)
