"""Facts and layers of a trained model as JSON for the engine of the page (``static/js/engine``), which needs no server.

Which of its models the engine can compute, and of which layers they consist, a family says in its page module; see
:mod:`saccade.web.family_page`. The functions here write the layers that the engine has.

Small enough to lie inside a page: two bytes a weight. Weights that were saved as float16 stay so, bit by bit; those of
a float32 or int8 model become integers times a scale of their row, which is about ten times as near as float16 would
be. Where even that is too coarse, they travel as they are. A norm is a scale and a shift of each channel, which the
engine folds into the layer that follows when it loads them: exact behind a gate, because the convolutions of the small
stack have no border.

Kernels are written as matrices (outputs × inputs of the kernel), the channels of a cell side by side, as the engine
reads them. Numbers are little-endian in base64.
"""

from __future__ import annotations

import base64

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.scores import AdditiveScorer
from saccade.config import to_dict
from saccade.errors import ConfigError
from saccade.geometry import Size
from saccade.models.picture_query import AnswerHead
from saccade.predict import Predictor
from saccade.trace import AttentionTrace, Look
from saccade.web.family_page import address_of, family_modules, page_entry

SCHEMA = "saccade.page-weights/1"
BLOCK = 4
"""The engine computes so many channels at once."""


def page_facts(predictor: Predictor, kind: str, trace: AttentionTrace) -> dict[str, object]:
    """What the page must know of a model besides its layers.

    Args:
        predictor: whose model it is.
        kind: what the engine calls the network.
        trace: of any one example; its looks have the names and grids of all.
    """
    facts = predictor.facts
    has_runtime = bool(family_modules(predictor.family, "runtime"))
    return {
        "schema": SCHEMA,
        "model": predictor.name,
        "kind": kind,
        **to_dict(page_entry(facts)),
        "runtime": address_of(predictor.family, "runtime") if has_runtime else None,
        "temperature": None if facts.calibration is None else facts.calibration.temperature,
        "sha256": facts.sha256,
        "looks": [_look(look) for look in trace.looks],
        "total": trace.total,
    }


def input_size(predictor: Predictor) -> Size:
    """(height, width) of the model's input; a ConfigError for a model that reads no pictures."""
    if (prepared := predictor.facts.preprocessing) is None:
        raise ConfigError(f"'{predictor.name}' does not read pictures, and the page can show nothing else")
    return prepared.size


def _look(look: Look) -> dict[str, object]:
    """What does not change from one input to the next."""
    entry: dict[str, object] = {"name": look.name, "kind": look.kind, "role": look.role, "norm": look.norm}
    if not look.is_spatial:
        return entry
    if look.weights is None or look.frame is None:
        raise ConfigError(f"look '{look.name}' has no weights on a grid, which the page cannot draw")
    return {**entry, "grid": list(look.weights.shape[-2:]), "frame": look.frame.tolist()}


def convolution(layer: nn.Conv2d) -> dict[str, object]:
    """A square convolution."""
    bias = torch.zeros(layer.out_channels) if layer.bias is None else layer.bias  # (D,)
    weight = layer.weight if layer.kernel_size[0] % 2 else F.pad(layer.weight, (1, 0, 1, 0))  # zeros before: odd again
    return {
        "side": weight.shape[-1],
        "inputs": layer.in_channels,
        "outputs": layer.out_channels,
        "weight": matrix(weight.permute(0, 2, 3, 1).flatten(1)),  # (D,kkC)
        "bias": floats(bias),
    }


def scorer(layer: AdditiveScorer) -> dict[str, object]:
    """Attention scores g_att, for queries by their numbers."""
    return {
        "see": convolution(layer.from_features),
        "asked": matrix(layer.from_query.weight.T),  # (Q,D)
        "read": floats(layer.to_score.weight.flatten()),  # (D,)
        "bias": float(layer.to_score.bias.item()),  # type: ignore[union-attr]  # the scorer has a bias
    }


def head(layer: AnswerHead) -> dict[str, object]:
    """The classifier, with the norm before it folded into its weights."""
    scale, shift = _affine(layer.norm)  # (C,) each
    weight = layer.classify.weight.double()  # (K,C)
    # float32, as they are few and of very different sizes: the norm enlarges most what is quietest
    return {"weight": floats(weight * scale), "bias": floats(layer.classify.bias.double() + weight @ shift)}


def norm(layer: nn.modules.batchnorm._BatchNorm) -> dict[str, object]:
    """A norm with fixed statistics."""
    return dict(zip(("scale", "shift"), map(floats, _affine(layer))))


def _affine(norm: nn.modules.batchnorm._BatchNorm) -> tuple[Tensor, Tensor]:
    """A norm with fixed statistics as scale and shift of each channel, (C,) each."""
    # it tracks statistics
    mean, variance = norm.running_mean.double(), norm.running_var.double()  # type: ignore[union-attr]
    scale = norm.weight.double() / (variance + norm.eps).sqrt()  # (C,)
    return scale, norm.bias.double() - mean * scale


def matrix(numbers: Tensor, *, exact: bool = False) -> dict[str, object]:
    """Rows (R,C) at two bytes a number: as float16 where that loses nothing, otherwise as int16 with a scale a row.

    Args:
        numbers: the rows.
        exact: write float32 in place of int16.
    """
    stored = {"rows": numbers.shape[0], "columns": numbers.shape[1]}
    half = numbers.half()
    if torch.equal(half.to(numbers.dtype), numbers):
        return stored | {"type": "float16", "values": _base64(half.numpy().astype("<f2"))}
    if exact:
        return stored | {"type": "float32", "values": floats(numbers)}
    largest = torch.iinfo(torch.int16).max
    scales = numbers.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / largest  # (R,)
    whole = (numbers.double() / scales.double()[:, None]).round().clamp(-largest, largest)  # (R,C)
    values = _base64(whole.numpy().astype("<i2"))
    return stored | {"type": "int16", "scales": floats(scales), "values": values}


def floats(numbers: Tensor) -> str:
    """Numbers in single precision, row by row."""
    return _base64(numbers.numpy().astype("<f4"))


def _base64(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode("ascii")
