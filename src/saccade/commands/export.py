"""``export``: a trained model as ONNX, for programs that have no saccade."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from saccade.commands.verb import Command, Remark, checked, print_table


@checked
def export(model: str | Path, out: Path | str, *, to: Literal["onnx"] = "onnx") -> dict[str, Any]:
    """Write a model as ONNX, with the answer and every look as outputs.

    A JSON sidecar says what the numbers mean. The folder is written whole or not at all, and only after onnxruntime has
    given torch's numbers. A model that says its answer word by word is written as two graphs, ``begin.onnx`` and
    ``step.onnx``.

    Args:
        model: zoo name, model folder or run folder.
        out: folder to write to. It must be new or empty, or hold an earlier export, which is replaced.
        to: the format.

    Returns:
        The sidecar: names, types and shapes of inputs and outputs, what each look is, and how far the numbers of
        onnxruntime are from torch's.

    Example:
        >>> sidecar = saccade.export("soft-mref", "exported")  # doctest: +SKIP
        >>> sidecar["outputs"]                                 # doctest: +SKIP
    """
    from saccade.adapters.onnx import export_onnx

    return export_onnx(model, out)


def show(sidecar: dict[str, Any], arguments: Mapping[str, Any], remark: Remark) -> None:
    """Print the outputs."""
    from saccade.adapters.onnx import GRAPH, SIDECAR

    differences = sidecar["check"]["differences"]
    rows = [
        (name, entry["type"], ", ".join(map(str, entry["shape"])), differences[name])
        for name, entry in sidecar["outputs"].items()
    ]
    print_table(f"{sidecar['model']} as ONNX", ("output", "type", "shape", "off from torch by"), rows)
    files = ", ".join(str(arguments["out"] / file) for file in sidecar.get("graphs", (GRAPH,)))
    remark(f"wrote {files} and {arguments['out'] / SIDECAR}; checked with {sidecar['check']['runtime']}")


COMMAND = Command(
    export, show, place={"model": "MODEL"}, names={"out": "-o"}, example="saccade export soft-mref --out exported"
)
