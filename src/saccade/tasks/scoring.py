"""What the scores of every model on pictures share: whole batches, the cells of a trace, plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.trace import AttentionTrace

BATCH = 250


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


def only_defined(means: dict[str, float]) -> dict[str, float]:
    """The means that are numbers: of a score that no picture has, nothing is said."""
    return {name: mean for name, mean in means.items() if mean == mean}


def without_nan(value: Any) -> Any:
    """NaN means undefined; JSON says null."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
