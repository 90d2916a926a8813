"""``saccade tour``: runs the shipped models on built-in data and writes a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.options import Device, Quiet
from saccade.cli.terminal import bar, print_table


def tour(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer scenes: hundreds instead of thousands.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for report.html.")] = Path("tour"),
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Score against the published numbers, attention against baselines, in one page."""
    import saccade

    with bar("tour", None, shown=not quiet) as update:
        result = saccade.tour(out, quick, device, progress=lambda _, done, total: update(done, total))
    for table in result.tables:
        print_table(table.title, table.columns, table.rows)
    typer.echo(f"open {result.report} in a browser ({result.seconds:.0f} s)")
