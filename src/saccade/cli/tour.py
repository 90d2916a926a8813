"""``saccade tour``: runs the shipped models on built-in data and writes a report."""

from __future__ import annotations

import typer

from saccade.cli.from_function import Given, Typed, command_of
from saccade.cli.options import Quiet
from saccade.cli.terminal import bar, print_table


@command_of("saccade.verbs.tour:tour", {"out": Typed("-o")}, example="saccade tour --quick --out tour")
def tour(given: Given, quiet: Quiet = False) -> None:
    """Make the tour, and print its tables."""
    import saccade

    with bar("tour", None, shown=not quiet) as update:
        result = saccade.tour(**given, on_progress=lambda _, done, total: update(done, total))
    for table in result.tables:
        print_table(table.title, table.columns, table.rows)
    typer.echo(f"open {result.report} in a browser ({result.seconds:.0f} s)")
