"""A model as an ONNX graph: the answer and every look are outputs with names, and any number of inputs goes in.

A captioner is two graphs, the encoding of a picture and one decoding step; the caller does the search. ``begin.onnx``
takes pictures and gives the scene (``features``, ``seen``) and the memory (``hidden``, ``cell``). ``step.onnx`` takes
these and the word before (B,), -1 at the start, and gives the logits of the next word, the look for it and the new
memory. A row is one caption: a beam repeats the rows of its picture.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.errors import CheckpointError, MissingExtraError
from saccade.models.base import AttentionModel
from saccade.trace import Look

SAID = ("weights", "gain", "choice", "active", "emits")
"""What of a look changes from picture to picture; its frame may as well."""
FreeSizes = Mapping[str, Mapping[int, str]]
"""Axes whose size may differ from input to input: name of the input → axis → word for its size."""
NOTHING = -1
"""The word before the first."""
_NEEDED = ("onnx", "onnxscript", "onnxruntime")
_TALKATIVE = ("torch.onnx", "onnxscript", "onnx_ir")


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
    held = {name: tensor for name, tensor in look.tensors().items() if name in SAID}
    if look.frame is not None and look.frame.dim() == 3:
        held["frame"] = look.frame.float()  # (B,2,3)
    return {f"{look.name}.{name}": tensor for name, tensor in held.items()}


def onnx_bytes(graph: Any, example: Mapping[str, Tensor], free: FreeSizes | None = None) -> bytes:
    """The graph as the bytes of an ONNX file, for any batch size.

    Args:
        graph: what is exported, in eval mode and main memory.
        example: its inputs by name, in order; how large they are but for the batch and ``free`` sizes stays fixed.
        free: further axes of any size: input → axis → word.

    Raises:
        CheckpointError: the model does something that ONNX has no word for.
    """
    with torch.inference_mode():
        names = list(graph(*example.values()))
    for recurrent in (torch.ops.aten.gru.input, torch.ops.aten.lstm.input):
        # torch exports them as loops, by a kernel that it registers meanwhile; in a second export a cache hides it.
        getattr(recurrent, "_dispatch_cache", {}).clear()
    try:
        with _silence():
            program = torch.onnx.export(
                graph,
                args=tuple(example.values()),
                input_names=list(example),
                output_names=names,
                dynamic_shapes=_free_axes(graph, [{0: "batch", **(free or {}).get(name, {})} for name in example]),
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        reason = " ".join(str(error.__cause__ or error).split())[:300]
        raise CheckpointError(
            f"a model of class {type(graph.model).__name__} cannot be exported to ONNX yet: {reason}"
        ) from error
    proto = cast(torch.onnx.ONNXProgram, program).model_proto
    for function in proto.functions:
        _forget(function)
    _forget(proto.graph)
    return cast(bytes, proto.SerializeToString())


def _free_axes(graph: nn.Module, axes: list[dict[int, str]]) -> tuple[Any, ...]:
    """As torch wants them: one for each argument of ``forward``, where ``*given`` is one argument."""
    names = inspect.signature(graph.forward).parameters.values()
    return (tuple(axes),) if any(name.kind is name.VAR_POSITIONAL for name in names) else tuple(axes)


def _forget(graph: Any) -> None:
    """Take out of a graph how it came about: torch notes where on this machine each line of code lies."""
    del graph.metadata_props[:]
    for part in ("node", "value_info", "input", "output", "initializer"):
        for entry in getattr(graph, part, ()):
            if hasattr(entry, "metadata_props"):  # the inputs of a function are bare names
                del entry.metadata_props[:]
    for inner in (attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")):
        _forget(inner)


def require_onnx() -> None:
    """Refuse to start where a package of the extra is missing."""
    for package in _NEEDED:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise MissingExtraError("exporting to ONNX", "export", f"{package} does not load ({error})") from error


@contextmanager
def _silence() -> Iterator[None]:
    """Exporters report their progress as warnings; what goes wrong is raised or found by the check."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


class Begin(nn.Module):
    """Pictures (B,3,H,W) → scene and memory by name."""

    def __init__(self, model: AttentionModel) -> None:
        super().__init__()
        self.model: Any = model
        self.eval()

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """``features`` (B,D,h,w), ``seen`` (B,h,w,A) of a model that attends, ``hidden`` and ``cell`` (B,n)."""
        scene, memory = self.model.init_state(self.model.encode(images))
        said = {"features": scene.features.contiguous()} | ({} if scene.seen is None else {"seen": scene.seen})
        return said | {"hidden": memory.hidden[:, 0], "cell": memory.cell[:, 0]}


class Step(nn.Module):
    """Scene, memory and the word before (B,) → the next word's logits, its look, and the memory after it."""

    def __init__(self, model: AttentionModel, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model: Any = model
        self.names = names
        """What :class:`Begin` gives, in order."""
        self.eval()

    def forward(self, *given: Tensor) -> dict[str, Tensor]:
        """``logits`` (B,V), ``word.weights`` (B,h,w), ``word.gain`` (B,), ``next_hidden`` and ``next_cell`` (B,n)."""
        *held, before = given
        named = dict(zip(self.names, held))
        scene = self.model.scene(named["features"], named.get("seen"))
        memory = self.model.memory(named["hidden"].unsqueeze(1), named["cell"].unsqueeze(1))
        said = self.model.next_word(scene, memory, before.unsqueeze(1))
        return {
            "logits": said.logits[:, 0],
            "word.weights": said.looked.weights[:, 0],
            "word.gain": said.looked.gain[:, 0],
            "next_hidden": said.memory.hidden[:, 0],
            "next_cell": said.memory.cell[:, 0],
        }


def step_inputs(begin: Begin, images: Tensor, words: int, seed: int) -> dict[str, Tensor]:
    """What a step takes after ``begin`` and a made-up word before."""
    with torch.no_grad():
        held = begin(images)
    generator = torch.Generator().manual_seed(seed)
    return {**held, "before": torch.randint(NOTHING, words, (images.shape[0],), generator=generator)}


def check_steps(model: AttentionModel, name: str) -> None:
    """Refuse a model that does not go word by word, or draws cells at random."""
    if not all(hasattr(model, part) for part in ("init_state", "next_word", "scene", "memory")):
        raise CheckpointError(f"'{name}' cannot be exported yet: it searches for its answer; use it through saccade")
    if getattr(model.config, "pick", "expected") == "drawn":
        raise CheckpointError(
            f"'{name}' samples the cells that it looks at, which an ONNX graph cannot; set pick: best or expected"
        )
