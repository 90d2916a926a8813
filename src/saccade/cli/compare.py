"""``saccade compare``: several models on one picture, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.options import Ask, Device, Json, OutFolder, Quiet
from saccade.cli.terminal import places, print_json, print_table, remark


def compare(
    models: Annotated[list[str], typer.Argument(help="Zoo names, model folders or run folders.", metavar="MODEL…")],
    image: Annotated[str, typer.Option("--image", "-i", help="The picture.")],
    ask: Ask = None,
    out: OutFolder = None,
    html: Annotated[
        bool, typer.Option("--html", help="Write a self-contained page as well; without --out into 'compare'.")
    ] = False,
    json: Json = False,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Ask several models the same about one picture."""
    from saccade.verbs.compare import compare as ask_all
    from saccade.verbs.compare import write_comparison

    out = Path("compare") if html and out is None else out
    sightings = ask_all(models, image, ask=ask, device=device)
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
