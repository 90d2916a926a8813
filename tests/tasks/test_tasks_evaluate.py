"""The one loop that scores: batches in order, joined as if in one."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.families.question.scores import sweep_areas
from saccade.metrics.maps.faithfulness import deletion_and_insertion
from saccade.tasks import evaluate as forward_passes
from saccade.tasks.evaluate import (
    Job,
    Measurements,
    Scoring,
    evaluate,
    in_parts,
)
from tiny_models import example_batch, named, tiny_model

N = 24


class Counting(Scoring):
    """Measures the number of each example, and when it was asked for."""

    def __init__(self, together: int, threads: int = 1) -> None:
        self.together, self.threads = together, threads  # type: ignore[misc]
        self.numbers = torch.arange(N)
        self.asked: list[tuple[list[int], int]] = []

    def measure(self, numbers: Tensor, before: int) -> Measurements:
        kept = Measurements()
        kept.answers.add_values({"accuracy": numbers % 3 == 0})
        kept.columns.append(picture=numbers)
        self.asked.append((numbers.tolist(), before))
        return kept

    def further(self) -> list[Job]:
        def costly(numbers: Tensor) -> Measurements:
            kept = Measurements()
            kept.causal.add_values({"hold": numbers.double() / N})
            return kept

        return [(costly, torch.arange(4)), (costly, torch.arange(4, 6))]

    def scores(self, kept: Measurements) -> dict[str, Any]:
        picture = kept.columns["picture"]
        assert picture.tolist() == list(range(N))
        assert kept.causal["hold"].tolist() == [number / N for number in range(6)]
        return {"n": len(picture), "metrics": kept.answers.means(), "measured": [(kept.answers, picture)]}

    def details(self, kept: Measurements, found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"said": int(kept.columns["picture"].sum())}


@pytest.mark.parametrize(("together", "threads"), [(5, 1), (5, 2), (100, 1)])
def test_batches_are_joined_in_their_order_however_many_are_under_way(together: int, threads: int) -> None:
    scoring, seen = Counting(together, threads), []
    found = evaluate(scoring, lambda what, done, total: seen.append((done, total)))
    assert (found["n"], found["metrics"]) == (N, {"accuracy": pytest.approx(1 / 3)})
    assert found["said"] == N * (N - 1) // 2  # type: ignore[typeddict-item]
    assert found["counts"]["accuracy"] == N
    assert sorted(number for numbers, _ in scoring.asked for number in numbers) == list(range(N))
    assert all(numbers[0] == before for numbers, before in scoring.asked)
    assert seen[-1] == (N + 6, N + 6)  # with those that cost more
    assert len(seen) == len(scoring.asked) + 2
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})  # each moves the bar
    assert "verdict" not in found


QUERY_MODELS = ("soft", "hard", "stn", "stn-tuned", "hattnet", "hattnet-ctx", "cross", "film", "vit", "blind")


def tiny(name):
    return tiny_model(name, 1).eval()


def batch(model, count=6):
    inputs, _ = example_batch(type(model), count, 0)
    images = inputs["images"]
    return images, torch.arange(len(images)) % 4


@pytest.fixture
def two_at_once(monkeypatch):
    """So that six pictures are several parts, and an odd number leaves one over."""
    monkeypatch.setattr(forward_passes, "at_once", lambda images, size=None: 2)


@pytest.mark.usefixtures("two_at_once")
@torch.no_grad()
@pytest.mark.parametrize("name", QUERY_MODELS)
def test_in_parts_is_the_whole_without_its_features(name):
    model = tiny(name)
    images, query = (each[:5] for each in batch(model))
    whole, parts = model.forward_raw(images, query), in_parts(model, images, query)
    expected = {key: tensor for key, tensor in named(whole).items() if not key.endswith((".values", ".context"))}
    assert len(expected) < len(named(whole))
    assert named(parts).keys() == expected.keys()
    for key, tensor in named(parts).items():
        torch.testing.assert_close(tensor, expected[key], rtol=1e-5, atol=1e-6)
    assert [look.name for look in model.wrap(parts, images.shape[-2:]).trace.looks]


@pytest.mark.usefixtures("two_at_once")
@torch.no_grad()
@pytest.mark.parametrize("fill", [0.0, "picture"])
def test_sweeps_of_shared_pictures_are_those_of_each_question_alone(fill):
    model = tiny("hattnet-ctx")
    images, _ = batch(model)
    images, picture, query = images[:3], torch.tensor([0, 2, 0, 1, 2, 0]), torch.tensor([0, 1, 2, 3, 0, 1])
    maps = torch.rand(3, *images.shape[-2:], generator=torch.Generator().manual_seed(0))
    filled = images.roll(1, 0) if fill == "picture" else fill
    answers = model.forward_raw(images[picture], query).logits.argmax(-1)
    found = sweep_areas(model, images, maps, query, answers, picture, fill=filled)

    def probability(altered, which):
        logits = model.forward_raw(altered, query[which]).logits
        return logits.softmax(-1).gather(1, answers[which, None]).squeeze(1)

    alone = filled[picture] if fill == "picture" else fill
    curves = deletion_and_insertion(probability, images[picture], maps[picture], fill=alone)
    for name, curve in zip(("deletion", "insertion"), curves):
        torch.testing.assert_close(found[name], curve.area, rtol=0, atol=1e-6)
        assert len(found[name].unique()) > 1


@pytest.mark.usefixtures("two_at_once")
@torch.no_grad()
def test_many_labels_are_swept_by_their_own_probability():
    """The sigmoid of one label, not its share among all."""
    model = tiny("soft")
    images, _ = batch(model)
    model.multi_label = True
    logits = model.forward_raw(images[:1], torch.tensor([1])).logits
    label = logits.argmax(-1)
    maps = torch.ones(1, *images.shape[-2:])
    asked = torch.tensor([1]), label, torch.tensor([0])
    found = sweep_areas(model, images[:1], maps, *asked, fill=images[:1])  # the fill is the picture: nothing changes
    torch.testing.assert_close(found["deletion"], F.sigmoid(logits.amax(1)), rtol=0, atol=1e-6)
