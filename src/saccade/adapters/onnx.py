"""A trained model for other programs: one ONNX file, and a JSON sidecar that says what its numbers mean.

The folder holds ``model.onnx``, whose outputs are the answer and every look, for any number of inputs, and
``model.json``. It is written whole or not at all, and only once onnxruntime has given torch's numbers (:func:`check`).

A captioner is two graphs; the caller does the search. ``begin.onnx`` takes pictures and gives the scene (``features``,
``seen``) and the memory (``hidden``, ``cell``). ``step.onnx`` takes these and the word before (B,), -1 at the start,
and gives the logits of the next word, the look for it and the new memory. A row is one caption.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saccade.errors import CheckpointError, MissingExtraError, OutputError
from saccade.files import folder_in_place, write_bytes, write_json
from saccade.models.base import AttentionModel
from saccade.models.caption_decoder import EncodedImage, LstmState
from saccade.models.caption_decoding import END, UNKNOWN
from saccade.predict import Predictor, load
from saccade.trace import Look
from saccade.zoo.folders import resolve

SCHEMA = "saccade.onnx/1"
GRAPH, SIDECAR = "model.onnx", "model.json"
BEGIN, STEP = "begin.onnx", "step.onnx"  # of a model that says its answer word by word
# How far outputs may be from torch's: up to 1 by this, larger ones by this share of their largest; ids not at all.
TOLERANCE = 1e-4
BATCHES = (1, 3, 8)  # How many inputs are tried at once; the graph was made with another number
_OF_SCORES = ("data", "split", "n", "seed", "protocol", "metrics", "attention")
VARYING = ("weights", "gain", "choice", "active", "emits")  # Of a look, from picture to picture; its frame may vary too
NOTHING = -1  # The word before the first

MadeUpInputs = Callable[[int, int], Mapping[str, Tensor]]  # Count and seed → made-up inputs of the graph by name
# Axes whose size may differ from input to input: name of the input → axis → word for its size.
FreeSizes = Mapping[str, Mapping[int, str]]


def export_onnx(model: str | Path, out: str | Path) -> dict[str, Any]:
    """Write ``model`` to the folder ``out``; see :func:`saccade.export`."""
    require_onnx()
    out = Path(out)
    is_export = any((out / name).is_file() for name in (GRAPH, BEGIN))
    if out.exists() and not is_export and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out}: holds something that is not an export; choose a new or empty folder")
    predictor = load(resolve(model), "cpu")  # published models of other libraries are no folders
    if predictor.model.answers_in_one_pass:
        graph = AnswerAndLooks(predictor.model)
        free = {**predictor.reads.free_sizes(), **predictor.responder.free_sizes()}
        data, part = _exported(graph, partial(example_inputs, predictor), free)
        files, sidecar = {GRAPH: data}, {**_facts(predictor), "file": GRAPH, **part, **_meaning(predictor, graph)}
    else:
        files, sidecar = _export_steps(predictor)
    with folder_in_place(out) as place:
        for name, data in files.items():
            write_bytes(place / name, data)
        write_json(place / SIDECAR, sidecar)
    return sidecar


def _exported(graph: Any, examples: MadeUpInputs, free: FreeSizes) -> tuple[bytes, dict[str, Any]]:
    example = examples(2, 0)
    data = onnx_bytes(graph, example, free)
    checked = check(data, graph, examples)
    with torch.inference_mode():
        outputs = graph(*example.values())
    return data, {
        "sha256": hashlib.sha256(data).hexdigest(),
        "opset": _opset(data),
        "inputs": {name: _tensor(tensor, free.get(name)) for name, tensor in example.items()},
        "outputs": {name: _tensor(tensor) for name, tensor in outputs.items()},
        "check": checked,
    }


def _export_steps(predictor: Predictor) -> tuple[dict[str, bytes], dict[str, Any]]:
    """A captioner as two graphs by file, and the sidecar."""
    model, facts = predictor.model, predictor.facts
    searches = not all(hasattr(model, part) for part in ("init_state", "next_word"))
    if searches or getattr(model.config, "pick", "expected") == "drawn":
        why = "searches for its answer" if searches else "samples the cells it looks at; set pick: best or expected"
        raise CheckpointError(f"'{predictor.name}' cannot be exported to ONNX yet: it {why}")
    begin = Begin(model)

    def pictures(count: int, seed: int) -> dict[str, Tensor]:
        return dict(predictor.reads.examples(count, facts, seed))

    def states(count: int, seed: int) -> dict[str, Tensor]:
        """What a step takes after ``begin`` and a made-up word before."""
        with torch.no_grad():
            state = begin(*pictures(count, seed).values())
        generator = torch.Generator().manual_seed(seed)
        return {**state, "before": torch.randint(NOTHING, len(facts.answers), (count,), generator=generator)}

    files, parts = {}, {}
    for name, graph, examples in ((BEGIN, begin, pictures), (STEP, Step(model), states)):
        files[name], parts[name] = _exported(graph, examples, {})

    outputs = {f"{file} {name}": tensor for file, part in parts.items() for name, tensor in part["outputs"].items()}
    differences = {
        f"{file} {name}": off for file, part in parts.items() for name, off in part["check"]["differences"].items()
    }
    both = {"largest_difference": max(differences.values()), "differences": differences}
    return files, {
        **_facts(predictor),
        "graphs": parts,
        "search": {
            "start": NOTHING,
            "end": END,
            "unknown": UNKNOWN,  # a word that no caption says
            "longest": int(model.config.longest),
        },
        "outputs": outputs,
        "check": parts[BEGIN]["check"] | both,
    }


def example_inputs(predictor: Predictor, count: int, seed: int) -> dict[str, Tensor]:
    """``count`` made-up inputs by name, no two alike, each with a query if the model takes one."""
    return {**predictor.reads.examples(count, predictor.facts, seed), **predictor.responder.examples(count, seed)}


def _meaning(predictor: Predictor, graph: AnswerAndLooks) -> dict[str, Any]:
    with torch.inference_mode():
        looks = graph.model(*example_inputs(predictor, 2, 0).values()).trace.looks
    return {
        **graph.model.answer_format(),
        **({"own_slots": list(graph.model.extra_slots)} if graph.model.extra_slots else {}),
        "looks": [_look(look) for look in looks],
        "total": graph.model.total,
        "scores": [{name: getattr(score, name) for name in _OF_SCORES} for score in predictor.facts.scores],
    }


def _facts(predictor: Predictor) -> dict[str, Any]:
    facts = predictor.facts
    return {
        "schema": SCHEMA,
        "model": predictor.name,
        "architecture": facts.architecture,
        "family": facts.family,
        "parameters": facts.parameters,
        "licence": facts.licence,
        "weights_sha256": facts.sha256,
        "preprocessing": predictor.reads.input_spec(facts),
        "queries": list(facts.queries),
        "answers": list(facts.answers),
    }


def _look(look: Look) -> dict[str, Any]:
    """A look, and under which names the graph gives its tensors; a constant frame is written here."""
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

    return next(int(entry.version) for entry in onnx.load_from_string(data).opset_import if not entry.domain)


def check(data: bytes, graph: Any, examples: MadeUpInputs) -> dict[str, Any]:
    """How far each output of the ONNX file ``data`` is off the ``graph``; over :data:`TOLERANCE` a CheckpointError."""
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
        arrays = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
        for name, array in zip(names, arrays):
            worst[name] = max(worst[name], _distance(name, torch.from_numpy(array), expected[name]))
    return {
        "runtime": f"onnxruntime {onnxruntime.__version__}",
        "against": f"torch {torch.__version__}",
        "batches": list(BATCHES),
        "tolerance": TOLERANCE,
        "largest_difference": max(worst.values()),
        "differences": worst,
    }


def _distance(name: str, actual: Tensor, expected: Tensor) -> float:
    """The largest difference between two tensors, once it is known to be small enough."""
    off = float((actual.double() - expected.double()).abs().max()) if actual.numel() else 0.0
    largest = max(1.0, float(expected.double().abs().max())) if expected.numel() else 1.0
    allowed = TOLERANCE * largest if expected.is_floating_point() else 0.0
    if not off <= allowed:  # not a number fails too
        raise CheckpointError(
            f"onnxruntime and torch differ by {off:.3g} in {name}, more than {allowed:g}; nothing was written; another "
            "version of torch or onnxruntime may do better"
        )
    return off


class AnswerAndLooks(nn.Module):
    """What a model reads (B,…), such as pictures (B,3,H,W), and its query (B,…) if it is asked → outputs by name.

    ``answer`` (B,) or (B,T) ids, ``logits`` and ``probabilities`` (B,K) or (B,T,K); of each look ``NAME.weights`` and
    what else it says, ``NAME.frame`` (B,2,3) where the frame is the picture's own, as that of a crop is.
    """

    def __init__(self, model: AttentionModel) -> None:
        super().__init__()
        self.model = model
        self.eval()

    def forward(self, read: Tensor, query: Tensor | None = None) -> dict[str, Tensor]:
        """The outputs, in the order of the graph's."""
        raw = self.model.respond(self.model.encode(read), query)
        logits, answer = self.model.logits_and_answer(raw)  # (B,K), (B,), or with a step axis (B,T,K), (B,T)
        outputs = {"answer": answer, "probabilities": self.model.probabilities(logits), "logits": logits}
        for look in self.model.looks(raw):
            outputs |= look_outputs(look)
        return outputs


def look_outputs(look: Look) -> dict[str, Tensor]:
    """The tensors of a look that are outputs, by name."""
    tensors = {name: tensor for name, tensor in look.tensors().items() if name in VARYING}
    if look.frame is not None and look.frame.dim() == 3:
        tensors["frame"] = look.frame.float()  # (B,2,3)
    return {f"{look.name}.{name}": tensor for name, tensor in tensors.items()}


def onnx_bytes(graph: Any, example: Mapping[str, Tensor], free: FreeSizes) -> bytes:
    """The graph, in eval mode and main memory, as the bytes of an ONNX file, for any batch size.

    Sizes of the ``example`` inputs stay fixed, except the batch and ``free`` axes (input → axis → word).
    """
    with torch.inference_mode():
        names = list(graph(*example.values()))
    axes = tuple({0: "batch", **free.get(name, {})} for name in example)
    for recurrent in (torch.ops.aten.gru.input, torch.ops.aten.lstm.input):
        # torch exports them as loops, by a kernel that it registers meanwhile; in a second export a cache hides it.
        getattr(recurrent, "_dispatch_cache", {}).clear()
    try:
        with _silence():
            program: Any = torch.onnx.export(
                graph,
                args=tuple(example.values()),
                input_names=list(example),
                output_names=names,
                dynamic_shapes=(axes,) if isinstance(graph, Step) else axes,  # its ``*state`` is one argument
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        reason = " ".join(str(error.__cause__ or error).split())[:300]
        raise CheckpointError(
            f"a model of class {type(graph.model).__name__} cannot be exported to ONNX yet: {reason}"
        ) from error
    proto = program.model_proto
    for part in (*proto.functions, proto.graph):
        _forget(part)
    return bytes(proto.SerializeToString())


def _forget(graph: Any) -> None:
    """Remove the source lines of this machine that torch notes in a graph."""
    del graph.metadata_props[:]
    for part in ("node", "value_info", "input", "output", "initializer"):
        for entry in getattr(graph, part, ()):
            if hasattr(entry, "metadata_props"):  # the inputs of a function are bare names
                del entry.metadata_props[:]
    for inner in (attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")):
        _forget(inner)


def require_onnx() -> None:
    """Refuse to start where a package of the extra is missing."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise MissingExtraError("exporting to ONNX", "export", f"{package} does not load ({error})") from error


@contextmanager
def _silence() -> Iterator[None]:
    """Exporters report their progress as warnings; what goes wrong is raised or found by the check."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


class Begin(nn.Module):
    """Pictures (B,3,H,W) → scene and memory by name."""

    def __init__(self, model: AttentionModel) -> None:
        super().__init__()
        self.model: Any = model
        self.eval()

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """``features`` (B,D,h,w), ``seen`` (B,h,w,A) of a model that attends, ``hidden`` and ``cell`` (B,n)."""
        scene, memory = self.model.init_state(self.model.encode(images))
        attended = {} if scene.keys is None else {"seen": scene.keys}
        return {
            "features": scene.features.contiguous(), **attended,
            "hidden": memory.hidden[:, 0], "cell": memory.cell[:, 0],
        }  # fmt: skip


class Step(nn.Module):
    """Scene, memory and the word before (B,) → the next word's logits, its look, and the memory after it."""

    def __init__(self, model: AttentionModel) -> None:
        super().__init__()
        self.model: Any = model
        self.eval()

    def forward(self, *state: Tensor) -> dict[str, Tensor]:
        """``logits`` (B,V), ``word.weights`` (B,h,w), ``word.gain`` (B,), ``next_hidden`` and ``next_cell`` (B,n)."""
        *scene, hidden, cell, before = state  # what Begin gives, in order, and the word before
        memory = LstmState(hidden.unsqueeze(1), cell.unsqueeze(1))
        step = self.model.next_word(EncodedImage(*scene), memory, before.unsqueeze(1))
        return {
            "logits": step.logits[:, 0],
            "word.weights": step.looked.weights[:, 0],
            "word.gain": step.looked.gain[:, 0],
            "next_hidden": step.memory.hidden[:, 0],
            "next_cell": step.memory.cell[:, 0],
        }
