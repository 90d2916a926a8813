"""Questions about pictures whose features a frozen backbone has already computed and stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.families.question.tables.data import TableData
from saccade.models.base import QueryModel
from saccade.tasks.cached_features import CachedFeatures


class EncodedQuestions(NamedTuple):
    """Questions with what is kept of their pictures."""

    encoding: Tensor
    """(B,…) as ``encode`` makes it."""
    query: Tensor
    """(B,) number of the query."""
    label: Tensor
    """(B,) number of the answer, or (B,K) float 0 or 1 where there may be several."""


class QuestionFeatures:
    """One split of questions with the features of their pictures, by the number of the question.

    A picture that is asked several questions has its features once.

    Args:
        data: the questions.
        model: its backbone as it is now; what later becomes of it is not noticed.
        on_progress: as in :class:`CachedFeatures`.
    """

    def __init__(
        self,
        data: TableData,
        model: QueryModel,
        on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> None:
        self._data, self.size, self.split, self.device = data, data.size, data.split, data.device
        _, _, picture = data.questions(torch.arange(data.size))  # (N,)
        asked_about, self._which = torch.unique(picture, return_inverse=True)  # (P,), (N,)
        paths = [data.pictures.paths[number] for number in asked_about.tolist()]
        self._features = CachedFeatures(
            paths,
            lambda numbers: data.pictures.take(asked_about[numbers.to(asked_about.device)]),
            model,
            limit_mb=data.config.features_mb,
            on_progress=on_progress,
        )

    def take(self, indices: Tensor) -> EncodedQuestions:
        """The questions ``indices`` (B,), in that order."""
        query, label, _ = self._data.questions(indices)
        return EncodedQuestions(self._features.take(self._which[indices.to(self._which.device)]), query, label)
