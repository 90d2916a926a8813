"""What a family tells the live page about a model: the scenes it learned from, and its layers for the page's engine.

A family says which of its models the engine (``web/static/js/engine``) can compute, and of which layers; the functions
here write the layers. A weight takes two bytes: float16 stays so, others become integers times a scale of their row. A
norm is a scale and a shift of each channel, which the engine folds into the next layer: exact behind a gate, as the
convolutions of the small stack have no border. Kernels are matrices (outputs × inputs of the kernel), the channels of a
cell side by side.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.scores import AdditiveScorer
from saccade.data.scenes.drawing import COLOURS
from saccade.models.picture_query import AnswerHead
from saccade.trace import AttentionTrace

CANVAS = 100  # Side of a composed scene in pixels, as the models of digits were trained.
BLOCK = 4  # The engine computes so many channels at once.
Behind = Literal["black", "distractors", "clutter", "photo"]


@dataclass(frozen=True)
class TrainedScenes:
    """What the scenes of a model's training have in common."""

    digits: tuple[int, int]  # Fewest and most.
    sizes: tuple[tuple[int, int], ...]  # Ranges of the sides of their boxes in pixels.
    background: Behind
    colours: tuple[str, ...] = COLOURS
    repeats: bool = False  # Whether a digit may be there twice.


class PageModel(NamedTuple):
    """A model as the page's engine computes it."""

    kind: str  # The engine's name of such models
    layers: Mapping[str, object]  # Plain values
    trace: AttentionTrace  # Any of it: it tells the names and grids of looks


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
    """Rows (R,C) as float16 where that is exact, else as int16 with a scale a row, or as float32 if ``exact``."""
    stored = {"rows": numbers.shape[0], "columns": numbers.shape[1]}
    half = numbers.half()
    if torch.equal(half.to(numbers.dtype), numbers):
        return stored | {"type": "float16", "values": as_base64(half, "<f2")}
    if exact:
        return stored | {"type": "float32", "values": floats(numbers)}
    largest = torch.iinfo(torch.int16).max
    scales = numbers.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / largest  # (R,)
    whole = (numbers.double() / scales.double()[:, None]).round().clamp(-largest, largest)  # (R,C)
    return stored | {"type": "int16", "scales": floats(scales), "values": as_base64(whole, "<i2")}


def floats(numbers: Tensor) -> str:
    """Numbers in single precision, row by row."""
    return as_base64(numbers, "<f4")


def as_base64(numbers: Tensor, kind: str) -> str:
    """Numbers of a NumPy kind, row by row."""
    return base64.b64encode(numbers.numpy().astype(kind).tobytes()).decode("ascii")
