"""A trained model for other programs: one ONNX file, and a JSON sidecar that says what its numbers mean.

The folder holds ``model.onnx``, whose outputs are the answer and every look, and ``model.json``. It is written whole or
not at all, and only once onnxruntime has given torch's numbers (:func:`check`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.adapters.onnx_graph import (
    NOTHING,
    AnswerAndLooks,
    Begin,
    FreeSizes,
    Step,
    check_steps,
    look_outputs,
    onnx_bytes,
    require_onnx,
    step_inputs,
)
from saccade.atomic import folder_in_place, write_bytes, write_json
from saccade.errors import CheckpointError, OutputError
from saccade.models.caption_decoding import END, UNKNOWN
from saccade.predict import Predictor, load
from saccade.trace import Look

SCHEMA = "saccade.onnx/1"
GRAPH, SIDECAR = "model.onnx", "model.json"
BEGIN, STEP = "begin.onnx", "step.onnx"
"""Files of a model that says its answer word by word."""
TOLERANCE = 1e-4
"""How far a number may be off: outputs up to 1 by this, larger ones by this share of their largest; ids not at all."""
BATCHES = (1, 3, 8)
"""How many inputs at once are tried; the graph was made with another number."""


_OF_SCORES = ("data", "split", "n", "seed", "protocol", "metrics", "attention")

Examples = Callable[[int, int], Mapping[str, Tensor]]
"""Count and seed → made-up inputs of the graph by name."""


def export_onnx(model: str | Path, out: str | Path) -> dict[str, Any]:
    """Write ``model`` to the folder ``out``; see :func:`saccade.export`."""
    require_onnx()
    out = Path(out)
    is_export = any((out / name).is_file() for name in (GRAPH, BEGIN))
    if out.exists() and not is_export and not (out.is_dir() and not any(out.iterdir())):
        raise OutputError(f"{out}: holds something that is not an export; choose a new or empty folder")
    predictor = load(model, "cpu")
    if not predictor.model.answers_in_one_pass:
        return _export_steps(predictor, out)
    graph = AnswerAndLooks(predictor.model)
    examples = partial(example_inputs, predictor)
    free = {**predictor.reads.free_sizes(), **predictor.responder.free_sizes()}
    data = onnx_bytes(graph, examples(2, 0), free)
    checked = check(data, graph, examples)
    sidecar = _sidecar(predictor, graph, data, free) | {"check": checked}
    with folder_in_place(out) as place:
        write_bytes(place / GRAPH, data)
        write_json(place / SIDECAR, sidecar)
    return sidecar


def _export_steps(predictor: Predictor, out: Path) -> dict[str, Any]:
    """Write a captioner as two graphs (:mod:`saccade.adapters.onnx_graph`); returns the sidecar."""
    check_steps(predictor.model, predictor.name)
    facts, begin = predictor.facts, Begin(predictor.model)

    def pictures(count: int, seed: int) -> dict[str, Tensor]:
        return dict(predictor.reads.examples(count, facts, seed))

    def held(count: int, seed: int) -> dict[str, Tensor]:
        (images,) = pictures(count, seed).values()
        return step_inputs(begin, images, len(facts.answers), seed)

    step = Step(predictor.model, tuple(held(1, 0))[:-1])
    parts: dict[str, Any] = {}
    data: dict[str, bytes] = {}
    for file, graph, examples in ((BEGIN, begin, pictures), (STEP, step, held)):
        data[file] = onnx_bytes(graph, examples(2, 0))
        with torch.inference_mode():
            outputs = graph(*examples(2, 0).values())
        parts[file] = {
            "sha256": hashlib.sha256(data[file]).hexdigest(),
            "opset": _opset(data[file]),
            "inputs": {name: _tensor(tensor) for name, tensor in examples(2, 0).items()},
            "outputs": {name: _tensor(tensor) for name, tensor in outputs.items()},
            "check": check(data[file], graph, examples),
        }
    steps = [part["check"] for part in parts.values()]
    sidecar = {
        "schema": SCHEMA,
        "model": predictor.name,
        "architecture": facts.architecture,
        "family": facts.family,
        "weights_sha256": facts.sha256,
        "preprocessing": predictor.reads.input_spec(facts),
        "answers": list(facts.answers),
        "graphs": parts,
        "search": {
            "start": NOTHING,
            "end": END,
            "unknown": UNKNOWN,  # a word that no caption says
            "longest": int(predictor.model.config.longest),
        },
        "outputs": {f"{file} {name}": shape for file, part in parts.items() for name, shape in part["outputs"].items()},
        "check": {
            **steps[0],
            "largest_difference": max(each["largest_difference"] for each in steps),
            "differences": {
                f"{file} {name}": off
                for file, part in parts.items()
                for name, off in part["check"]["differences"].items()
            },
        },
    }
    with folder_in_place(out) as place:
        for file, found in data.items():
            write_bytes(place / file, found)
        write_json(place / SIDECAR, sidecar)
    return sidecar


def example_inputs(predictor: Predictor, count: int, seed: int) -> dict[str, Tensor]:
    """``count`` made-up inputs by name, no two alike, and for a model that is asked a query for each."""
    return {**predictor.reads.examples(count, predictor.facts, seed), **predictor.responder.examples(count, seed)}


def _sidecar(predictor: Predictor, graph: AnswerAndLooks, data: bytes, free: FreeSizes) -> dict[str, Any]:
    """What the numbers of the graph mean."""
    facts, example = predictor.facts, example_inputs(predictor, 2, 0)
    with torch.inference_mode():
        outputs = graph(*example.values())
        looks = graph.model(*example.values()).trace.looks
    return {
        "schema": SCHEMA,
        "model": predictor.name,
        "architecture": facts.architecture,
        "family": facts.family,
        "parameters": facts.parameters,
        "licence": facts.licence,
        "file": GRAPH,
        "sha256": hashlib.sha256(data).hexdigest(),
        "weights_sha256": facts.sha256,
        "opset": _opset(data),
        "inputs": {name: _tensor(tensor, free.get(name)) for name, tensor in example.items()},
        "outputs": {name: _tensor(tensor) for name, tensor in outputs.items()},
        "preprocessing": predictor.reads.input_spec(facts),
        "queries": list(facts.queries),
        "answers": list(facts.answers),
        **graph.model.answer_format(),
        **({"own_slots": list(graph.model.extra_slots)} if graph.model.extra_slots else {}),
        "looks": [_look(look) for look in looks],
        "total": graph.model.total,
        "scores": [{name: getattr(score, name) for name in _OF_SCORES} for score in facts.scores],
    }


def _look(look: Look) -> dict[str, Any]:
    """A look, and under which names the graph gives its tensors; a frame that never changes is told here."""
    outputs = {name.rpartition(".")[2]: name for name in look_outputs(look)}
    grid = look.grid if look.weights is None else tuple(look.weights.shape[-2 if look.is_spatial else -1 :])
    frame = None if look.frame is None or "frame" in outputs else look.frame.tolist()
    return {
        "name": look.name,
        "kind": look.kind,
        "role": look.role,
        "norm": look.norm,
        **({"base": look.base} if look.base else {}),  # added to the weights before they multiply
        "grid": list(grid or ()),
        "steps": look.steps,
        "frame": frame,
        "outputs": outputs,
    }


def _tensor(tensor: Tensor, free: Mapping[int, str] | None = None) -> dict[str, Any]:
    shape = ["batch", *((free or {}).get(axis, size) for axis, size in enumerate(tensor.shape[1:], 1))]
    return {"type": str(tensor.dtype).removeprefix("torch."), "shape": shape}


def _opset(data: bytes) -> int:
    import onnx

    return next(int(each.version) for each in onnx.load_from_string(data).opset_import if not each.domain)


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
    off = float((found.double() - expected.double()).abs().max()) if found.numel() else 0.0
    largest = max(1.0, float(expected.double().abs().max())) if expected.numel() else 1.0
    allowed = TOLERANCE * largest if expected.is_floating_point() else 0.0
    if not off <= allowed:  # not a number fails too
        raise CheckpointError(
            f"onnxruntime and torch differ by {off:.3g} in {name}, more than {allowed:g}; nothing was written; another "
            "version of torch or onnxruntime may do better"
        )
    return off
