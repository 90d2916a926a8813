"""A trained model for other programs: one ONNX file, and a JSON sidecar that says what its numbers mean.

The folder holds ``model.onnx``, whose outputs are the answer and every look, and ``model.json``. It is written whole or
not at all, and only once onnxruntime has given torch's numbers (:mod:`saccade.verbs.exporting.check`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saccade.atomic import folder_in_place, write_bytes, write_json
from saccade.errors import ConfigError, OutputError, nearest
from saccade.models.caption_decoding import END, UNKNOWN
from saccade.models.io.facts import ModelFacts
from saccade.predict import Predictor, load
from saccade.trace import Look
from saccade.verbs.exporting.check import check
from saccade.verbs.exporting.graph import AnswerAndLooks, FreeSizes, look_outputs, onnx_bytes, require_onnx
from saccade.verbs.exporting.steps import NOTHING, Begin, Step, check_steps, step_inputs

FORMATS = ("onnx",)
SCHEMA = "saccade.onnx/1"
GRAPH, SIDECAR = "model.onnx", "model.json"
BEGIN, STEP = "begin.onnx", "step.onnx"
"""Files of a model that says its answer word by word."""


def export_onnx(model: str | Path, out: str | Path, *, to: str = "onnx") -> dict[str, Any]:
    """Write ``model`` to the folder ``out``; see :func:`saccade.export`."""
    if to not in FORMATS:
        raise ConfigError(f"to: no format '{to}': {nearest(to, FORMATS)}")
    require_onnx()
    out = Path(out)
    _check_place(out)
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


def _check_place(out: Path) -> None:
    """Refuse a place that holds something else, before any work is done."""
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out}: a file is in the way; name a folder")
    if out.is_dir() and any(out.iterdir()) and not any((out / name).is_file() for name in (GRAPH, BEGIN)):
        raise OutputError(f"{out}: holds something that is not an export; choose a new or empty folder")


def _export_steps(predictor: Predictor, out: Path) -> dict[str, Any]:
    """Write a captioner as two graphs (:mod:`saccade.verbs.exporting.steps`); returns the sidecar."""
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
        "scores": [_score(facts, number) for number in range(len(facts.scores))],
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


def _score(facts: ModelFacts, number: int) -> dict[str, Any]:
    score = facts.scores[number]
    return {
        "data": score.data,
        "split": score.split,
        "n": score.n,
        "seed": score.seed,
        "protocol": score.protocol,
        "metrics": score.metrics,
        "attention": score.attention,
    }


def _tensor(tensor: Tensor, free: Mapping[int, str] | None = None) -> dict[str, Any]:
    shape = ["batch", *((free or {}).get(axis, size) for axis, size in enumerate(tensor.shape[1:], 1))]
    return {"type": str(tensor.dtype).removeprefix("torch."), "shape": shape}


def _opset(data: bytes) -> int:
    import onnx

    return next(int(each.version) for each in onnx.load_from_string(data).opset_import if not each.domain)
