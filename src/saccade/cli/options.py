"""Options about printing, which are those of the command line alone; all others come from the Python functions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.", show_default=False)]
OutFolder = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="PATH", help="Folder to write to.", show_default="nothing is written"),
]
