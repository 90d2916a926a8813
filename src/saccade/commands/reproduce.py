"""``reproduce``: a published table, measured beside published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.commands.verb import Command, Remark, print_table

if TYPE_CHECKING:
    from saccade.papers.tables import Reproduction


def reproduce(table: str) -> Reproduction:
    """Make a paper's table from the results that come with saccade.

    Each cell has its mean over seeds, the number of seeds, n and protocol, and each row the command that trains it.

    Args:
        table: name of a table. 'saccade reproduce' lists them.

    Returns:
        The tables, every cell as plain values, and the commands that draw the paper's figures.

    Example:
        >>> saccade.reproduce("racnn-table").tables  # doctest: +SKIP
    """
    from saccade.papers.tables import reproduction

    return reproduction(table)


def several(table: Sequence[str] = (), *, out: Path | None = None) -> Any:
    """:func:`reproduce` for each of some tables; of none, what tables there are.

    Args:
        table: which tables. None: they are listed.
        out: a Markdown file for the tables. None: they are printed alone.
    """
    if not table:
        from saccade.papers.tables import TABLES

        return {name: entry.title for name, entry in TABLES.items()}
    results = {name: reproduce(name) for name in table}
    if out is not None:
        from saccade.files import write_text

        write_text(out, "\n".join(result.markdown() for result in results.values()))
    return results if len(table) > 1 else results[table[0]]


def show(results: Any, arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print the tables, or their names."""
    if not arguments["table"]:
        print_table("tables", ("name", "what it is"), list(results.items()))
    elif arguments["out"] is None or not arguments["quiet"]:
        for result in results.values() if isinstance(results, dict) else [results]:
            for table in result.tables:
                print_table(table.caption, table.columns, table.rows, note=table.note)


COMMAND = Command(
    reproduce,
    show,
    run=several,
    place={"table": "TABLE"},
    names={"out": "-o"},
    example="saccade reproduce hattnet-table1 --out table1.md",
)
