"""``saccade report``: runs and records as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.from_function import Given, Typed, command_of
from saccade.cli.options import Quiet
from saccade.cli.terminal import remark


@command_of(
    "saccade.verbs.report:report",
    {"sources": Typed("RUN|RECORD", many=True)},
    example="saccade report runs/soft --out soft.html\nsaccade report looks/ --out looks.html",
)
def report(
    given: Given,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    quiet: Quiet = False,
) -> None:
    """Write the page."""
    import saccade

    made = saccade.report(**given)
    is_there = out.exists()
    made.save(out)
    if quiet:
        return
    if made.left_out:
        remark(made.left_out)
    remark(f"wrote {out}, in place of the file that was there" if is_there else f"wrote {out}")
