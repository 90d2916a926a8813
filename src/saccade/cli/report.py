"""``saccade report``: runs and records as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saccade.cli.options import Quiet
from saccade.cli.terminal import remark

if TYPE_CHECKING:
    from saccade.record import Record


def report(
    sources: Annotated[
        list[Path], typer.Argument(help="One run folder; or records and folders of records.", metavar="RUN|RECORD…")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    quiet: Quiet = False,
) -> None:
    """Write a page that opens offline."""
    from saccade.show.report_sources import report_from_records, report_from_run

    is_run = len(sources) == 1 and (sources[0] / "config.yaml").is_file()
    page = report_from_run(sources[0]) if is_run else report_from_records(_records(sources))
    page.save(out)
    if not quiet:
        remark(f"wrote {out}")


def _records(sources: Sequence[Path]) -> list[Record]:
    from saccade.errors import DataError
    from saccade.record import read_record

    paths: list[Path] = []
    for source in sources:
        if source.is_dir():
            inside = sorted(path for path in source.glob("*.json") if path.with_suffix(".safetensors").is_file())
            if not inside:
                raise DataError(f"{source}: neither a run folder (no config.yaml) nor a folder of records (*.json)")
            paths += inside
        else:
            paths.append(source)
    return [read_record(path) for path in paths]
