"""``saccade reproduce``: prints a published table with the measured numbers beside the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.from_function import Given, command_of
from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import print_json, print_table


@command_of("saccade.verbs.reproduce:reproduce", {}, leave_out={"table"}, example="saccade reproduce hattnet-table1")
def reproduce(
    given: Given,
    named: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE…", help="Which tables; without one they are listed.")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="A Markdown file for the tables.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the tables one after the other, and print them."""
    from saccade.atomic import write_text
    from saccade.papers.tables import TABLES
    from saccade.verbs.reproduce import reproduce as verb

    if not named:
        known = {name: each.title for name, each in TABLES.items()}
        if json:
            print_json(known)
        else:
            print_table("tables", ("name", "what it is"), list(known.items()))
        return
    results = {name: verb(name) for name in named}
    if out is not None:
        write_text(out, "\n".join(result.markdown() for result in results.values()))
    if json:
        whole = {name: result.to_json() for name, result in results.items()}
        print_json(whole if len(named) > 1 else whole[named[0]])
    elif out is None or not quiet:
        for result in results.values():
            for table in result.tables:
                print_table(table.title, table.columns, table.rows, note=table.note)
