"""``saccade compare``: several models on one picture, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.from_function import Given, Typed, command_of
from saccade.cli.options import Json, OutFolder, Quiet
from saccade.cli.terminal import places, print_json, print_table, remark


@command_of(
    "saccade.verbs.compare:compare",
    {"models": Typed("MODEL"), "picture": Typed("--image -i", shows="PATH")},
    example="saccade compare soft-mref hard-mref --image scene.png --ask 7 --out compared",
)
def compare(
    given: Given,
    out: OutFolder = None,
    html: Annotated[
        bool,
        typer.Option("--html", help="Write a page as well; without --out into 'compare'.", show_default=False),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask, write and print."""
    import saccade
    from saccade.verbs.compare import write_comparison

    out = Path("compare") if html and out is None else out
    sightings = saccade.compare(**given)
    written = [] if out is None else write_comparison(sightings, out, html=html)
    if json:
        print_json([seen.to_json() for seen in sightings])
        return
    rows = [
        (
            seen.model,
            seen.question,
            seen.answer,
            f"{seen.confidence:.1%}",
            places(seen.looked_at) if seen.looked_at else seen.top_slot,
        )
        for seen in sightings
    ]
    looked_at = "looked at x, y" if sightings[0].is_spatial else "looked at"
    print_table(sightings[0].source.name, ("model", "asked", "answer", "confidence", looked_at), rows)
    for path in [] if quiet else written:
        remark(f"wrote {path}")
