"""Deletion and insertion of what a model answers, with each altered picture encoded once for all its questions."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.metrics import deletion_and_insertion
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import EncodedPictures, at_once


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
        seen = EncodedPictures(model, altered)
        found = model.probabilities(seen.ask(query[which], copy if question.shape[1] > 1 else None).logits)  # (M,K)
        table = found.new_zeros(question.shape)  # (N,A); where a picture has fewer questions nothing is read
        table[copy, column] = found.gather(1, answers[which][:, None]).squeeze(1)
        return table

    curves = deletion_and_insertion(probability, images, maps, fill=fill, max_batch=at_once(images))
    return {name: curve.area[picture, place] for name, curve in zip(("deletion", "insertion"), curves)}


def _place_among_equals(numbers: Tensor) -> Tensor:
    """How many of the same number stand before each of the ``numbers`` (B,): (B,)."""
    same = numbers[:, None] == numbers  # (B,B)
    return same.tril(-1).sum(1)
