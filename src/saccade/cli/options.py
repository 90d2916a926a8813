"""Options that mean the same in every verb."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of everything random.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.")]
Ask = Annotated[str | None, typer.Option("--ask", help="The question, one of those the model knows.")]
OutFolder = Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write to.")]
