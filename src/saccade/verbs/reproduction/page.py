"""The page of a reproduction: its tables and figures in one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence

from saccade.show.report import Code, Report, Section, Table
from saccade.verbs.plain_table import PlainTable


def table_block(table: PlainTable) -> Table:
    """A table of words as a block of a report."""
    rows = [[" · ".join(map(_unbroken, cell.split("\n"))) for cell in row] for row in table.rows]
    return Table([column.replace("\n", ", ") for column in table.columns], rows, caption=table.title, note=table.note)


def _unbroken(line: str) -> str:
    """A count such as ``1 × 10,000``, or an interval, with spaces that no browser breaks."""
    return line.replace(" ", "\u00a0") if " × " in line or line.startswith("[") else line


def reproduction_page(
    title: str, lead: str, sections: Sequence[Section], *, again: str, commands: Sequence[str]
) -> Report:
    """The sections that have something to show, then how to make the table again.

    Args:
        title: of the page.
        lead: the first paragraph.
        sections: one without blocks is left out.
        again: how the table is made again, in a sentence.
        commands: what to type for that.
    """
    last = Section("Make it again", again, [Code(command) for command in commands])
    return Report(title, lead, [*(section for section in sections if section.blocks), last])
