"""``export``: a trained model as ONNX, for programs that have no saccade."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal


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

    Raises:
        MissingExtraError: the extra ``export`` is not installed.
        CheckpointError: the model cannot be exported, or its export does not give its numbers.
        OutputError: ``out`` holds something else.

    Example:
        >>> sidecar = saccade.export("soft-mref", "exported")  # doctest: +SKIP
        >>> sidecar["outputs"]                                 # doctest: +SKIP
    """
    from saccade.verbs.exporting.export import export_onnx

    return export_onnx(model, out, to=to)
