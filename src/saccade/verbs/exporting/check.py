"""Checks an export: runs the same inputs through onnxruntime and torch and compares every output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from saccade.errors import CheckpointError

TOLERANCE = 1e-4
"""How far a number may be off: outputs up to 1 by this, larger ones by this share of their largest; ids not at all."""
BATCHES = (1, 3, 8)
"""How many inputs at once are tried; the graph was made with another number."""


Examples = Callable[[int, int], Mapping[str, Tensor]]
"""Count and seed → made-up inputs of the graph by name."""


def check(data: bytes, graph: Any, examples: Examples) -> dict[str, Any]:
    """Compare the ONNX file ``data`` with the ``graph`` it was made from.

    Returns:
        What was compared and how far each output was off at most.

    Raises:
        CheckpointError: onnxruntime refuses the file, or an output is off by more than :data:`TOLERANCE`.
    """
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no base of their own
        reason = " ".join(str(error).split())[:300]
        raise CheckpointError(
            f"onnxruntime {onnxruntime.__version__} does not take the graph: {reason}; nothing was written; update it"
        ) from error
    names = [output.name for output in session.get_outputs()]
    worst = dict.fromkeys(names, 0.0)
    for seed, count in enumerate(BATCHES, start=1):
        inputs = examples(count, seed)
        with torch.inference_mode():
            expected = graph(*inputs.values())
        if names != list(expected):
            raise CheckpointError(f"the ONNX graph has outputs {names}, expected {list(expected)}; nothing was written")
        found = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
        for name, array in zip(names, found):
            worst[name] = max(worst[name], _distance(name, torch.from_numpy(array), expected[name]))
    return {
        "runtime": f"onnxruntime {onnxruntime.__version__}",
        "against": f"torch {torch.__version__}",
        "batches": list(BATCHES),
        "tolerance": TOLERANCE,
        "largest_difference": max(worst.values()),
        "differences": worst,
    }


def _distance(name: str, found: Tensor, expected: Tensor) -> float:
    """The largest difference between two tensors, once it is known to be small enough."""
    if found.shape != expected.shape:
        shapes = f"{tuple(found.shape)} in onnxruntime and {tuple(expected.shape)} in torch"
        raise CheckpointError(f"the shape of {name} is {shapes}; nothing was written")
    off = float((found.double() - expected.double()).abs().max()) if found.numel() else 0.0
    largest = max(1.0, float(expected.double().abs().max())) if expected.numel() else 1.0
    allowed = TOLERANCE * largest if expected.is_floating_point() else 0.0
    if not off <= allowed:  # not a number fails too
        raise CheckpointError(
            f"onnxruntime and torch differ by {off:.3g} in {name}, more than {allowed:g}; nothing was written; another "
            "version of torch or onnxruntime may do better"
        )
    return off
