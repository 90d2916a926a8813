"""Options that mean the same in every verb.

Help names the default of every option. Where the default is computed, or the option is a switch, it is given in words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of everything random.", min=0, show_default="the recipe's")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.", show_default="off")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.", show_default="off")]
Ask = Annotated[
    str | None,
    typer.Option("--ask", help="The question: one the model knows; of a story, any.", show_default="none"),
]
OutFolder = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder to write to.", show_default="nothing is written")
]
Beam = Annotated[int | None, typer.Option("--beam", help="Captions followed side by side.", min=1, show_default="5")]
LengthPenalty = Annotated[
    float | None,
    typer.Option("--length-penalty", help="Captions are ranked by log p / length^this.", show_default="0"),
]
Offline = Annotated[bool, typer.Option("--offline", help="Fetch no weights of timm and the like.", show_default="off")]
