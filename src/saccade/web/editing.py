"""Edited attention in the page: which looks can be edited, what was changed, and the answer without the edit.

A view names its ``editable`` looks. An edited answer has ``edited``: for each look how many of its cells differ from
the model's own and how far they moved (total variation of the two maps, each as shares of its sum), the looks that
were given as they had been (``frozen``), and the ``unedited`` answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from saccade.sighting import Sighting
from saccade.trace import AttentionTrace, Look
from saccade.web.errors import ApiError
from saccade.web.views import Json

SAME = 1e-4
"""Weights that differ by less than this share of the largest are the same: a page sends some digits only."""


def editable_looks(trace: AttentionTrace, names: Collection[str]) -> list[str]:
    """The looks of ``trace`` that a brush can change: weights on a grid, without steps, that the model takes back.

    Args:
        trace: of one answer.
        names: the looks whose weights the model takes.
    """
    return [look.name for look in trace.looks if look.name in names and _grid(look) is not None]


def given_weights(
    trace: AttentionTrace, names: Collection[str], attention: Mapping[str, Sequence[float]]
) -> dict[str, Tensor]:
    """Weights (1,h,w) of each look in ``attention``, which has them row by row; an ApiError where they do not fit."""
    allowed = editable_looks(trace, names)
    if not allowed:
        raise ApiError(422, "not_editable", "this model has no look whose weights can be edited here")
    given = {}
    for name, weights in attention.items():
        if name not in allowed:
            raise ApiError(422, "not_editable", f"look '{name}' cannot be edited; these can: {', '.join(allowed)}")
        shape = _grid(trace.look(name)) or (0, 0)
        if len(weights) != shape[0] * shape[1]:
            wanted = f"{shape[0]} × {shape[1]} = {shape[0] * shape[1]}"
            raise ApiError(422, "invalid", f"attention.{name}: expected {wanted} weights, found {len(weights)}")
        given[name] = torch.tensor(weights, dtype=torch.float32).reshape(1, *shape)
    return given


def told(own: Sighting, given: Mapping[str, Tensor]) -> Json:
    """What was edited, beside the answer ``own`` of the model's own attention."""
    looks: Json = {}
    frozen: list[str] = []
    for name, weights in given.items():
        before = torch.as_tensor(own.trace.look(name).weights)  # (1,h,w)
        cells = int(((weights - before).abs() > SAME * before.abs().max()).sum())
        if cells:
            looks[name] = {"cells": cells, "of": before.numel(), "moved": round(_moved(before, weights), 4)}
        else:
            frozen.append(name)
    said = {"answer": own.answer, "confidence": own.confidence}
    return {"looks": looks, "frozen": frozen, "unedited": said}


def _grid(look: Look) -> tuple[int, int] | None:
    """(h, w) of weights on a grid without steps; None of any other look."""
    if look.weights is None or look.has_steps or not look.is_spatial or look.full is not None:
        return None
    return look.weights.shape[-2], look.weights.shape[-1]


def _moved(before: Tensor, after: Tensor) -> float:
    """Total variation between two maps as shares; 1 where one of them has no weight at all."""
    sums = float(before.sum()), float(after.sum())
    if min(sums) <= 0:
        return 1.0
    return 0.5 * float((before / sums[0] - after / sums[1]).abs().sum())
