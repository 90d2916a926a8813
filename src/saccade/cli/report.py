"""``saccade report``: runs and records as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.options import Device, Quiet
from saccade.cli.terminal import remark


def report(
    sources: Annotated[
        list[Path], typer.Argument(help="One run folder; or records and folders of records.", metavar="RUN|RECORD…")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    looks: Annotated[
        int, typer.Option("--looks", help="Validation pictures of a run, with where its model looks.", min=0, max=100)
    ] = 4,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Of a run: what 'evaluate --json' wrote of it.", show_default="none"),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write a page that opens offline."""
    from saccade.verbs.report import report as make_report

    made = make_report(sources, looks=looks, scores=scores, device=device)
    is_there = out.exists()
    made.save(out)
    if quiet:
        return
    if made.left_out:
        remark(made.left_out)
    remark(f"wrote {out}, in place of the file that was there" if is_there else f"wrote {out}")
