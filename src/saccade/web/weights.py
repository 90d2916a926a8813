"""A trained model as JSON for the engine of the page (``static/js/engine``), which answers without a server.

Small enough to lie inside a page: two bytes a weight. Weights that were saved as float16 stay so, bit by bit; those of
a float32 or int8 model become integers times a scale of their row, which is about ten times as near as float16 would
be. A norm is a scale and a shift of each channel, which the engine folds into the layer that follows when it loads
them: exact behind a gate, because the convolutions of the small stack have no border.

Kernels are written as matrices (outputs × inputs of the kernel), the channels of a cell side by side, as the engine
reads them. Numbers are little-endian in base64.
"""

from __future__ import annotations

import base64
import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saccade.attention.scores import AdditiveScorer
from saccade.backbones import Stages
from saccade.config import to_dict
from saccade.errors import ConfigError
from saccade.families import model_spec
from saccade.models.hattnet import HAttNetModel
from saccade.models.picture_query import AnswerHead
from saccade.models.soft import SoftModel
from saccade.predict import Predictor
from saccade.trace import Look
from saccade.web.scene_kinds import trained_scenes

SCHEMA = "saccade.page-weights/1"
KINDS: dict[type, str] = {SoftModel: "soft", HAttNetModel: "hattnet"}
"""The models that the engine computes, and what it calls them."""
BLOCK = 4
"""The engine computes so many channels at once."""


def page_model(predictor: Predictor) -> dict[str, Any]:
    """The facts and weights of ``predictor``'s model as plain values, which ``load`` of the engine takes.

    Raises:
        ConfigError: for a model that the engine cannot compute.
    """
    model, facts = copy.deepcopy(_computable(predictor)).cpu().float().requires_grad_(False), predictor.facts
    height, width = facts.preprocessing.size
    scenes = trained_scenes(facts)
    trace = model(torch.zeros(1, 3, height, width), torch.zeros(1, dtype=torch.long)).trace
    return {
        "schema": SCHEMA,
        "model": predictor.name,
        "kind": KINDS[type(model)],
        "architecture": facts.architecture,
        "task": facts.family,
        "summary": model_spec(facts.architecture).summary,
        "queries": list(facts.queries),
        "answers": list(facts.answers),
        "size": [height, width],
        "scenes": None if scenes is None else to_dict(scenes),
        "sha256": facts.sha256,
        "looks": [_look(look) for look in trace.looks],
        "total": trace.total,
        "stages": _stages(model),
        "attention": _scorer(model.attention.scorer),
        "head": _head(model.head),
    }


def _computable(predictor: Predictor) -> SoftModel | HAttNetModel:
    """The model, where the engine has all of its layers; otherwise a ConfigError that says what it lacks."""
    model = predictor.model
    if not isinstance(model, (SoftModel, HAttNetModel)):
        raise ConfigError(
            f"'{predictor.name}' ({predictor.facts.architecture}) does not run inside a page; soft and hattnet do, "
            "any other model runs behind 'saccade serve'"
        )
    config = model.config
    for what, is_so in {
        f"has the backbone {config.backbone}": config.backbone != "small",
        "answers with several labels at once": config.multi_label,
        "has a prior": config.prior,
        f"has {config.channels} channels and {config.hidden} hidden units, no multiples of {BLOCK}": (
            config.channels % BLOCK or config.hidden % BLOCK
        ),
    }.items():
        if is_so:
            raise ConfigError(f"'{predictor.name}' {what}, which the page cannot compute; use 'saccade serve'")
    return model


def _look(look: Look) -> dict[str, Any]:
    """What does not change from picture to picture."""
    if look.weights is None or look.frame is None:
        raise ConfigError(f"look '{look.name}' has no weights on a grid, which the page cannot draw")
    return {
        "name": look.name,
        "kind": look.kind,
        "role": look.role,
        "norm": look.norm,
        "grid": list(look.weights.shape[-2:]),
        "frame": look.frame.tolist(),
    }


# ---------------------------------------------------------------- layers


def _stages(model: SoftModel | HAttNetModel) -> list[dict[str, Any]]:
    """Every stage: the norm before it, its convolution, the gate behind it."""
    gates, norms = (dict(model.gates), dict(model.norms)) if isinstance(model, HAttNetModel) else ({}, {})
    stages: list[dict[str, Any]] = []
    before = None
    for name in model.backbone.names:
        stages.append(
            {
                "norm": None if before is None else _norm(before),  # type: ignore[arg-type]
                "convolution": _convolution(_convolution_of(model.backbone, name)),
                "gate": _scorer(gates[name].scorer) if name in gates else None,  # type: ignore[arg-type]
            }
        )
        before = norms.get(name)
    return stages


def _convolution_of(backbone: Stages, name: str) -> nn.Conv2d:
    return next(layer for layer in backbone.stages[name].modules() if isinstance(layer, nn.Conv2d))


def _convolution(layer: nn.Conv2d) -> dict[str, Any]:
    bias = torch.zeros(layer.out_channels) if layer.bias is None else layer.bias  # (D,)
    return {
        "side": layer.kernel_size[0],
        "inputs": layer.in_channels,
        "outputs": layer.out_channels,
        "weight": _matrix(layer.weight.permute(0, 2, 3, 1).flatten(1)),  # (D,kkC)
        "bias": _floats(bias),
    }


def _scorer(scorer: AdditiveScorer) -> dict[str, Any]:
    return {
        "see": _convolution(scorer.from_features),
        "asked": _matrix(scorer.from_query.weight.T),  # (Q,D)
        "read": _floats(scorer.to_score.weight.flatten()),  # (D,)
        "bias": float(scorer.to_score.bias.item()),  # type: ignore[union-attr]
    }


def _head(head: AnswerHead) -> dict[str, Any]:
    scale, shift = _affine(head.norm)  # (C,) each
    weight = head.classify.weight.double()  # (K,C)
    # float32, as they are few and of very different sizes: the norm enlarges most what is quietest
    return {"weight": _floats(weight * scale), "bias": _floats(head.classify.bias.double() + weight @ shift)}


def _norm(norm: nn.modules.batchnorm._BatchNorm) -> dict[str, Any]:
    return dict(zip(("scale", "shift"), map(_floats, _affine(norm))))


def _affine(norm: nn.modules.batchnorm._BatchNorm) -> tuple[Tensor, Tensor]:
    """A norm with fixed statistics as scale and shift of each channel, (C,) each."""
    mean, variance = norm.running_mean.double(), norm.running_var.double()  # type: ignore[union-attr]
    scale = norm.weight.double() / (variance + norm.eps).sqrt()  # (C,)
    return scale, norm.bias.double() - mean * scale


# ---------------------------------------------------------------- numbers


def _matrix(matrix: Tensor) -> dict[str, Any]:
    """Rows (R,C) at two bytes a number: as float16 where that loses nothing, otherwise as int16 with a scale a row."""
    stored = {"rows": matrix.shape[0], "columns": matrix.shape[1]}
    half = matrix.half()
    if torch.equal(half.to(matrix.dtype), matrix):
        return stored | {"type": "float16", "values": _base64(half.numpy().astype("<f2"))}
    largest = torch.iinfo(torch.int16).max
    scales = matrix.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / largest  # (R,)
    whole = (matrix.double() / scales.double()[:, None]).round().clamp(-largest, largest)  # (R,C)
    values = _base64(whole.numpy().astype("<i2"))
    return stored | {"type": "int16", "scales": _floats(scales), "values": values}


def _floats(numbers: Tensor) -> str:
    return _base64(numbers.numpy().astype("<f4"))


def _base64(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode("ascii")
