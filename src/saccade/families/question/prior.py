"""Baselines from the training questions alone: how often each answer is right, and where a part usually is.

A model that really looks must beat both: the most frequent answer, and the mean position of the part inside the
object's box.

Axes: Q queries, K answers, B examples.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.tables.table import Table
from saccade.metrics.intervals import mean_defined


@dataclass(frozen=True, eq=False)
class TrainingPrior:
    """Counts over the training rows of a table, in the words of a model."""

    overall: Tensor
    """(K,) share of the training questions whose answers hold each."""
    by_query: Tensor
    """(Q,K) the same for each query; the overall shares where a query is never asked in training."""
    place: Tensor
    """(Q,2) mean point inside the object's box, 0..1 along x and y; NaN where none is known."""

    def answers(self, query: Tensor) -> Tensor:
        """How often each answer holds for these queries (B,): (B,K)."""
        return self.by_query.to(query.device)[query]

    def points(self, query: Tensor, box: Tensor) -> Tensor:
        """Where the parts asked for (B,) usually lie in these boxes (B,4) xyxy: (B,2), NaN where unknown."""
        place = self.place.to(box)[query]  # (B,2)
        return box[:, :2] + place * (box[:, 2:] - box[:, :2])


def training_prior(table: Table, queries: tuple[str, ...], answers: tuple[str, ...]) -> TrainingPrior | None:
    """The prior of a table's training rows in the given words; None when it has none of them."""
    query_ids, answer_ids = ({word: number for number, word in enumerate(words)} for words in (queries, answers))
    holds = torch.zeros(len(queries), len(answers), dtype=torch.float64)
    asked = torch.zeros(len(queries), dtype=torch.float64)
    places: list[list[tuple[float, float]]] = [[] for _ in queries]
    for row in table.rows:
        if row.split != "train" or row.query not in query_ids:
            continue
        query = query_ids[row.query]
        asked[query] += 1
        for label in row.labels:
            if label in answer_ids:
                holds[query, answer_ids[label]] += 1
        if row.box is not None and row.point is not None:
            (left, top, right, bottom), (x, y) = row.box, row.point
            places[query].append(((x - left) / (right - left), (y - top) / (bottom - top)))
    if not asked.any():
        return None
    overall = holds.sum(0) / asked.sum()  # (K,)
    by_query = torch.where(asked[:, None] > 0, holds / asked[:, None].clamp(min=1), overall)  # (Q,K)
    return TrainingPrior(overall, by_query, torch.tensor([_mean(each) for each in places]))


def _mean(points: list[tuple[float, float]]) -> list[float]:
    """Mean (x, y) of points; NaN of none."""
    along = torch.tensor(points, dtype=torch.float64).reshape(-1, 2)  # (N,2)
    return [mean_defined(along[:, 0]).mean, mean_defined(along[:, 1]).mean]
