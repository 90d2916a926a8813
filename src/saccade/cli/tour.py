"""``saccade tour``: runs the shipped models on built-in data and writes a report."""

from __future__ import annotations

import typer

from saccade.cli.from_function import Given, Typed, command_of
from saccade.cli.options import Quiet
from saccade.cli.terminal import print_table, remark


@command_of("saccade.verbs.tour:tour", {"out": Typed("-o")}, example="saccade tour --quick --out tour")
def tour(given: Given, quiet: Quiet = False) -> None:
    """Make the tour, one line a model, and print its table."""
    import saccade

    def tell(what: str, done: int, total: int) -> None:
        if not quiet:
            remark(f"{done}/{total} {what}")

    result = saccade.tour(**given, on_progress=tell)
    print_table(result.table.title, result.table.columns, result.table.rows)
    typer.echo(f"open {result.report} in a browser ({result.seconds:.0f} s)")
