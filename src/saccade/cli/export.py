"""``saccade export``: writes a model for programs that do not use saccade."""

from __future__ import annotations

from saccade.cli.from_function import Given, Typed, command_of
from saccade.cli.options import Json, Quiet
from saccade.cli.terminal import print_json, print_table, remark


@command_of(
    "saccade.verbs.export:export",
    {"model": Typed("MODEL"), "out": Typed("-o")},
    example="saccade export soft-mref --out exported",
)
def export(given: Given, json: Json = False, quiet: Quiet = False) -> None:
    """Export and print."""
    import saccade
    from saccade.verbs.exporting.export import GRAPH, SIDECAR

    sidecar, out = saccade.export(**given), given["out"]
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
