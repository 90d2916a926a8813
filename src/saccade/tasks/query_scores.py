"""What the scores of every model on pictures share: forward passes in parts, whole batches, sweeps, plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.metrics import deletion, insertion
from saccade.models.base import PictureModel, QueryModel, Raw
from saccade.trace import AttentionTrace

BATCH = 250
AT_ONCE = {"cpu": 20, "cuda": 1000}  # pictures of 100×100 pixels in one forward pass: a CPU's caches hold few
_PIXELS = 100 * 100


def in_parts(model: QueryModel | PictureModel, images: Tensor, *more: Tensor) -> Raw:
    """What ``forward_raw`` gives for all pictures (and queries), computed a few at a time; scalars are left out."""
    inputs = zip(*(torch.split(tensor, at_once(images)) for tensor in (images, *more)))
    parts = [model.forward_raw(*part) for part in inputs]
    return {name: torch.cat([part[name] for part in parts]) for name, tensor in parts[0].items() if tensor.dim()}


def at_once(images: Tensor) -> int:
    """How many of the pictures (B,3,H,W) go through a model together."""
    pixels = images.shape[-2] * images.shape[-1]
    return max(1, AT_ONCE.get(images.device.type, BATCH) * _PIXELS // pixels)


def numbers_in_batches(total: int, batch_size: int) -> Iterator[Tensor]:
    """The numbers 0 … total − 1; what is left over joins the last batch: alone it could be all of one picture."""
    start = 0
    while start < total:
        end = start + batch_size if total - start >= 2 * batch_size else total
        yield torch.arange(start, end)
        start = end


def answers_of(trace: AttentionTrace) -> Tensor:
    """The answer ids (B,) of a trace."""
    if trace.answer is None:
        raise DataError("the model's trace holds no answer")
    return trace.answer


def cells_of(trace: AttentionTrace) -> tuple[Tensor, geometry.Size] | None:
    """Frame and grid of the last look with weights on the picture; None when every look on it is a crop."""
    spatial = [look for look in trace.looks if look.is_spatial and look.frame is not None]
    if not spatial:
        raise DataError("this model has no look on a picture: there is nothing to score")
    for look in reversed(spatial):
        if look.weights is not None and look.frame is not None:
            return look.frame, (look.weights.shape[-2], look.weights.shape[-1])
    return None


def sweep_areas(
    model: QueryModel, images: Tensor, query: Tensor, answers: Tensor, maps: Tensor, *, fill: float | Tensor
) -> dict[str, Tensor]:
    """``deletion`` and ``insertion`` (B,) of the probability of ``answers`` (B,), pixels in the order of ``maps``."""

    def probability(altered: Tensor, pictures: Tensor) -> Tensor:
        logits = in_parts(model, altered, query[pictures])["logits"]
        return model.probabilities(logits).gather(1, answers[pictures][:, None]).squeeze(1)

    return {
        "deletion": deletion(probability, images, maps, fill=fill).area,
        "insertion": insertion(probability, images, maps, fill=fill).area,
    }


def without_nan(value: Any) -> Any:
    """NaN means undefined; JSON says null."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
