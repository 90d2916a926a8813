"""What the scores of every model on pictures share: whole batches, the cells of a trace, sweeps, plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.metrics import deletion_and_insertion
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import Encoded, at_once
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


def sweep_areas(
    model: QueryModel,
    images: Tensor,
    maps: Tensor,
    query: Tensor,
    answers: Tensor,
    picture: Tensor,
    *,
    fill: float | Tensor,
) -> dict[str, Tensor]:
    """``deletion`` and ``insertion`` (B,) of the probability that a model gives its answers.

    Args:
        model: in eval mode.
        images: (P,3,H,W).
        maps: (P,H,W), the order of the pixels of each.
        query: (B,) what is asked.
        answers: (B,) what was answered.
        picture: (B,) the number of the picture that each question is about; altered once, it is asked all of them.
        fill: what replaces a pixel.
    """
    place = _place_among_equals(picture)  # (B,)
    asked = torch.full((len(images), int(place.max()) + 1), -1, device=picture.device)  # (P,A): the questions of each
    asked[picture, place] = torch.arange(len(picture), device=picture.device)

    def probability(altered: Tensor, pictures: Tensor) -> Tensor:
        question = asked[pictures]  # (N,A)
        copy, column = (question >= 0).nonzero().unbind(1)  # (M,) each
        which = question[copy, column]  # (M,)
        seen = Encoded(model, altered)
        found = model.probabilities(seen.ask(query[which], copy if question.shape[1] > 1 else None)["logits"])  # (M,K)
        table = found.new_zeros(question.shape)  # (N,A); where a picture has fewer questions nothing is read
        table[copy, column] = found.gather(1, answers[which][:, None]).squeeze(1)
        return table

    curves = deletion_and_insertion(probability, images, maps, fill=fill, max_batch=at_once(images))
    return {name: curve.area[picture, place] for name, curve in zip(("deletion", "insertion"), curves)}


def _place_among_equals(numbers: Tensor) -> Tensor:
    """How many of the same number stand before each of the ``numbers`` (B,): (B,)."""
    same = numbers[:, None] == numbers  # (B,B)
    return same.tril(-1).sum(1)


def without_nan(value: Any) -> Any:
    """NaN means undefined; JSON says null."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
