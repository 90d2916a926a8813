"""``saccade score``: scores maps from any tool against masks, boxes, points or a causal set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.options import Json, OutFolder, Quiet
from saccade.cli.terminal import print_json, print_table, remark, stages


def score(
    maps: Annotated[
        Path, typer.Argument(help="Folder, zip or tar of .npy .npz .png .tif .h5; one such file; records; or rows.")
    ],
    truth: Annotated[
        Path,
        typer.Option(
            "--truth", "-t", help="Masks (folder, zip, .npy), a table of boxes or points, COCO, or a causal set."
        ),
    ],
    objects: Annotated[
        Path | None, typer.Option("--objects", help="Masks of all objects, for selectivity.", show_default="none")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option("--pictures", help="The pictures, to draw maps on.", show_default="grey")
    ] = None,
    out: OutFolder = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="MAPS are pictures; make maps by own, gradcam, hirescam, gradxinput, ig, occlusion or rollout.",
            show_default="none",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Whose maps --method makes.", show_default="none")
    ] = None,
    signed: Annotated[
        str | None,
        typer.Option("--signed", help="Negative values: keep, abs or positive.", show_default="keep; abs of --method"),
    ] = None,
    resize: Annotated[str, typer.Option("--resize", help="To the size of: truth, map; or never.")] = "truth",
    nan: Annotated[str, typer.Option("--nan", help="Maps with NaN: skip, zero or stop.")] = "skip",
    missing: Annotated[str, typer.Option("--missing", help="Truths without a map: skip, zero or stop.")] = "skip",
    empty: Annotated[str, typer.Option("--empty", help="Empty truths: skip or stop.")] = "skip",
    broken: Annotated[str, typer.Option("--broken", help="Files that cannot be read: stop or skip.")] = "stop",
    key: Annotated[
        str | None, typer.Option("--key", help="Array in .npz and .h5 files of several.", show_default="the only one")
    ] = None,
    separator: Annotated[
        str, typer.Option("--separator", help="Between picture and question in the name of a map.")
    ] = "__",
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="Of rows of 'look --engine': local, or ray on a cluster.", show_default="local"),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option("--address", help="Of the Ray cluster: HOST:PORT or auto.", show_default="this machine alone"),
    ] = None,
    actors: Annotated[int | None, typer.Option("--actors", help="Of Ray.", min=1, show_default="one a CPU")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score maps from any tool, beside baselines and bounds. A map and its truth have the same file name.

    Prints scores and what was left out; --out writes scores.json, maps.csv (a row for each map) and report.html.
    """
    from saccade.verbs.score import score as score_maps

    with stages(shown=not quiet and not json) as on_progress:
        found = score_maps(
            maps,
            truth,
            objects=objects,
            key=key,
            method=method,
            model=model,
            engine=engine,
            address=address,
            actors=actors,
            on_progress=on_progress,
            **({} if signed is None else {"signed": signed}),
            resize=resize,
            nan=nan,
            missing=missing,
            empty=empty,
            broken=broken,
            separator=separator,
        )
    shown = maps if method is not None and pictures is None else pictures
    written = [] if out is None else found.save(out, pictures=shown)
    if json:
        print_json(found.to_json())
        return
    print_table(f"{found.maps} against {truth}", *found.table(), note=found.counted())
    if found.scene is not None:
        facts = found.scene.facts
        called = facts.get("version") or "causal set"
        print_table("about the scene", *found.scene.table(), note=f"{called}, digest {facts['digest']}")
    if not quiet:
        remark(" · ".join(line.partition(":")[0] for line in found.policies.lines()))
        for path in written:
            remark(f"wrote {path}")
