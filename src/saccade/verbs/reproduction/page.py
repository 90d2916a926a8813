"""The page of a reproduction: its tables and figures in one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence

from saccade.families.question.reproduction.figures import Drawing
from saccade.families.question.reproduction.table1 import LEGEND
from saccade.show.report import Block, Code, Report, Section, Table
from saccade.tasks.published import SEO_2016
from saccade.verbs.plain_table import PlainTable


def table_block(table: PlainTable) -> Table:
    """A table of words as a block of a report."""
    rows = [[" · ".join(map(_unbroken, cell.split("\n"))) for cell in row] for row in table.rows]
    return Table([column.replace("\n", ", ") for column in table.columns], rows, caption=table.title, note=table.note)


def _unbroken(line: str) -> str:
    """A count such as ``1 × 10,000``, or an interval, with spaces that no browser breaks."""
    return line.replace(" ", "\u00a0") if " × " in line or line.startswith("[") else line


def hattnet_page(
    main: Sequence[PlainTable],
    looking: Sequence[PlainTable],
    beyond: Sequence[PlainTable],
    confirmed: Sequence[PlainTable],
    figures: Sequence[Drawing],
) -> Report:
    """Tables 1a and 1b, what the maps say, the figures, and what goes beyond the paper."""
    sections = [
        Section("Table 1", LEGEND, [table_block(table) for table in main]),
        Section("Where it looked", "", [table_block(table) for table in looking]),
        Section("Figures", "", [figure.block() for figure in figures]),
        Section("Beyond the paper", "", [table_block(table) for table in beyond]),
        Section("Checked on this machine", "", [table_block(table) for table in confirmed]),
    ]
    again: list[Block] = [
        Code("saccade reproduce hattnet-table1 --out reproduction"),
        Code("saccade reproduce hattnet-table1 --train --seeds 3 --out reproduction"),
    ]
    kept = [section for section in sections if section.blocks]
    return Report(
        title="Hierarchical attention networks, Table 1",
        lead=f"{SEO_2016}, measured again. Numbers in the tables come from recorded runs that are part of saccade; "
        "what was computed on this machine says so.",
        sections=[*kept, Section("Make it again", "From the records, or by training what has no run yet.", again)],
    )
