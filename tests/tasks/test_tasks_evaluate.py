"""The one loop that scores: batches in order, joined as if in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.tasks.evaluate import Job, Kept, Scoring, evaluate

N = 24


class Counting(Scoring):
    """Measures the number of each example, and when it was asked for."""

    def __init__(self, together: int, threads: int = 1) -> None:
        self.together, self.threads = together, threads  # type: ignore[misc]
        self.numbers = torch.arange(N)
        self.asked: list[tuple[list[int], int]] = []

    def measure(self, numbers: Tensor, before: int) -> Kept:
        kept = Kept()
        kept.answers.add_values({"accuracy": numbers % 3 == 0})
        kept.columns.append(picture=numbers)
        self.asked.append((numbers.tolist(), before))
        return kept

    def further(self) -> list[Job]:
        def costly(numbers: Tensor) -> Kept:
            kept = Kept()
            kept.causal.add_values({"hold": numbers.double() / N})
            return kept

        return [(costly, torch.arange(4)), (costly, torch.arange(4, 6))]

    def scores(self, kept: Kept) -> dict[str, Any]:
        picture = kept.columns["picture"]
        assert picture.tolist() == list(range(N))
        assert kept.causal["hold"].tolist() == [number / N for number in range(6)]
        return {"n": len(picture), "metrics": kept.answers.means(), "measured": [(kept.answers, picture)]}

    def details(self, kept: Kept, found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"said": int(kept.columns["picture"].sum())}


@pytest.mark.parametrize(("together", "threads"), [(5, 1), (5, 2), (100, 1)])
def test_batches_are_joined_in_their_order_however_many_are_under_way(together: int, threads: int) -> None:
    scoring, seen = Counting(together, threads), []
    found = evaluate(scoring, lambda done, total: seen.append((done, total)))
    assert (found["n"], found["metrics"]) == (N, {"accuracy": pytest.approx(1 / 3)})
    assert found["said"] == N * (N - 1) // 2  # type: ignore[typeddict-item]
    assert found["counts"]["accuracy"] == N
    assert sorted(number for numbers, _ in scoring.asked for number in numbers) == list(range(N))
    assert all(numbers[0] == before for numbers, before in scoring.asked)
    assert seen[-1] == (N, N)
    assert len(seen) == len(scoring.asked)  # what costs more is no progress
    assert "verdict" not in found
