"""``saccade score``: scores maps from any tool against masks, boxes, points or a causal set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.from_function import RARE, Given, Typed, command_of
from saccade.cli.options import Json, OutFolder, Quiet
from saccade.cli.terminal import print_json, print_table, remark, stages


@command_of(
    "saccade.verbs.score:score",
    {
        "maps": Typed("MAPS"),
        "truth": Typed("-t", shows="PATH"),
        "objects": Typed(shows="PATH"),
        "method": Typed(shows="NAME"),
        "model": Typed(shows="MODEL"),
        "resize": RARE,
        "key": RARE,
        "separator": RARE,
        "engine": RARE,
        "address": RARE,
    },
    leave_out={"kind", "names"},
    example="saccade score maps/ --truth masks/ --out scored",
)
def score(
    given: Given,
    pictures: Annotated[
        Path | None,
        typer.Option("--pictures", metavar="PATH", help="The pictures, to draw maps on.", show_default="grey"),
    ] = None,
    out: OutFolder = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score, write and print."""
    import saccade

    with stages(shown=not quiet and not json) as on_progress:
        found = saccade.score(**given, on_progress=on_progress)
    shown = Path(given["maps"]) if given["method"] is not None and pictures is None else pictures
    written = [] if out is None else found.save(out, pictures=shown)
    if json:
        print_json(found.to_json())
        return
    print_table(f"{found.maps} against {given['truth']}", *found.table(), note=found.counted())
    if found.scene is not None:
        facts = found.scene.facts
        called = facts.get("version") or "causal set"
        print_table("about the scene", *found.scene.table(), note=f"{called}, digest {facts['digest']}")
    if not quiet:
        remark(" · ".join(line.partition(":")[0] for line in found.policies.lines()))
        for path in written:
            remark(f"wrote {path}")
