"""A table of words: for the terminal as it is, for a document as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlainTable:
    """Rows under columns; a cell may have several lines."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """What a reader must know of all of it, in a line below."""

    def markdown(self) -> str:
        r"""The rows and columns as Markdown, without the title.

        >>> print(PlainTable("t", ("a", "b"), [("1", "2\n3")]).markdown(), end="")
        | a | b |
        |---|---|
        | 1 | 2<br>3 |
        """
        head, *body = (
            "| " + " | ".join(cell.replace("\n", "<br>") for cell in line) + " |\n"
            for line in (self.columns, *self.rows)
        )
        return head + "|" + "---|" * len(self.columns) + "\n" + "".join(body)
