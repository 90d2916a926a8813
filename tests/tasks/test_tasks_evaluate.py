"""The one loop that scores: batches in order, joined as if in one; labels by an oracle, a constant and noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from saccade import geometry
from saccade.data.pictures.labelled import LabelledBatch
from saccade.models.base import Given, ImageOnlyModel
from saccade.tasks.evaluate import Job, Kept, Scoring, evaluate
from saccade.tasks.label_task import LabelScoring
from saccade.trace import SOFT, Act, ModelOutput

N, SIDE = 24, 8


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


class Halves:
    """A split: the left or the right half is bright, which is the answer and its evidence; two of three are left."""

    answers = ("left", "right")

    def take(self, indices: Tensor, vary: int | None = None) -> LabelledBatch:
        label = (indices % 3 == 2).long()
        columns = torch.arange(SIDE) >= SIDE // 2  # (W,)
        marked = (columns == label.bool()[:, None])[:, None].expand(-1, SIDE, -1)  # (B,H,W)
        return LabelledBatch(marked[:, None].repeat(1, 3, 1, 1).float(), label, marked)

    def sampled(self, limit: int | None) -> Tensor:
        return torch.arange(limit or 300)


class Reader(ImageOnlyModel):
    """Answers by ``say``, and looks where it says: both of the brightness of the halves (B,2)."""

    look_specs: ClassVar = {"half": replace(SOFT, frame=geometry.scale_shift((4.0, 8.0), (0.0, 0.0)))}

    def __init__(self, say: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.say = say

    def encode(self, images: Tensor) -> Tensor:
        return images.mean(1).unflatten(2, (2, -1)).mean((1, 3))  # (B,2)

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> ModelOutput:
        logits = self.say(encoding)  # (B,2)
        return ModelOutput(logits, {"half": Act(weights=logits.softmax(-1)[:, None])})  # (B,1,2)


def scored(say: Callable[[Tensor], Tensor], limit: int | None = None) -> dict[str, Any]:
    return dict(evaluate(LabelScoring(Reader(say).eval(), Halves(), limit)))


def test_an_oracle_is_right_sure_and_rests_on_the_evidence() -> None:
    found = scored(lambda halves: 50 * halves)
    assert found["metrics"] == {"accuracy": 1.0, "calibration_error": pytest.approx(0, abs=1e-6)}
    assert found["baselines"]["commonest_label"]["accuracy"] == pytest.approx(2 / 3)
    assert found["attention"]["pointing"] == 1
    assert found["against"]["answers"]["difference"] == pytest.approx(1 / 3)
    assert found["rests_on"]["accuracy"]["evidence_swapped"] == pytest.approx(2 / 3)
    assert scored(lambda halves: 50 * halves, 12)["n"] == 12


def test_who_always_says_the_commonest_beats_no_guess() -> None:
    found = scored(lambda halves: torch.tensor([1.0, 0.0]).repeat(len(halves), 1))
    assert found["metrics"]["accuracy"] == found["baselines"]["commonest_label"]["accuracy"] == pytest.approx(2 / 3)
    assert found["against"]["answers"]["difference"] == 0
    assert found["rests_on"]["accuracy"]["evidence_swapped"] == found["metrics"]["accuracy"]


def test_noise_is_right_by_chance() -> None:
    generator = torch.Generator().manual_seed(0)
    found = scored(lambda halves: torch.rand(len(halves), 2, generator=generator))
    assert found["metrics"]["accuracy"] == pytest.approx(0.5, abs=0.1)
