"""``saccade export``: writes a model for programs that do not use saccade."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import print_json, print_table, remark


def export(
    model: Annotated[str, typer.Argument(help="Zoo name, model folder or run folder.", metavar="MODEL")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")],
    to: Annotated[str, typer.Option("--to", help="The format: onnx.")] = "onnx",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write an ONNX file whose outputs are the answer and every look, with a JSON sidecar."""
    from saccade.verbs.export import GRAPH, SIDECAR
    from saccade.verbs.export import export as write

    sidecar = write(model, out, to=to)
    if json:
        print_json(sidecar)
        return
    differences = sidecar["check"]["differences"]
    rows = [
        (name, entry["type"], ", ".join(map(str, entry["shape"])), differences[name])
        for name, entry in sidecar["outputs"].items()
    ]
    print_table(f"{sidecar['model']} as ONNX", ("output", "type", "shape", "off from torch by"), rows)
    if not quiet:
        files = ", ".join(str(out / file) for file in sidecar.get("graphs", (GRAPH,)))
        remark(f"wrote {files} and {out / SIDECAR}; checked with {sidecar['check']['runtime']}")
