"""Scores of attribute models whose truth is known: a perfect one, a query-blind one, an untrained one."""

import math

import pytest
import torch
from attribute_stubs import Blind, Clairvoyant
from torch import nn

import saccade.data.scenes.stream as stream
from saccade import geometry
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.families.question.scores import SceneScoring
from saccade.families.question.task import Default, QuestionTask
from saccade.models.base import QueryModel
from saccade.tasks.evaluate import evaluate
from saccade.trace import Look, QuestionOutput

PACK = SceneDataConfig(glyphs="pack")
N = 240
MAPS = {"true_positive_strength", "pointing", "iou", "selectivity", "pr_auc"}


def four_errors(share: float, n: int = N) -> float:
    """Four standard errors of a measured share."""
    return 4 * math.sqrt(share * (1 - share) / n)


@pytest.fixture(scope="module")
def data():
    return SceneData(PACK, "test")


@pytest.fixture(scope="module")
def batch(data):
    return data.take(torch.arange(N))


@pytest.fixture(scope="module")
def perfect(data, batch):
    return evaluate(SceneScoring(Clairvoyant(batch).eval(), data, limit=N, sweeps=0))


@pytest.fixture(scope="module")
def blind(data, batch):
    return evaluate(SceneScoring(Blind(batch).eval(), data, limit=N, sweeps=0))


def test_a_perfect_model_is_right_and_causally_so(perfect, batch):
    assert perfect["metrics"]["accuracy"] == 1
    assert perfect["attention"]["causal_follow"] == 1
    assert perfect["attention"]["causal_hold"] == 1
    assert {value for value in perfect["metrics"]["accuracy_by_scale"].values() if value is not None} == {1.0}


def test_asked_for_another_digit_a_perfect_model_tells_that_ones_colour(perfect, batch):
    """By chance the other digit has the same colour, one time in five."""
    rows = torch.arange(N)
    asked = (batch.layout.classes == batch.other_query()[0][:, None]) & batch.layout.present
    shared = batch.layout.colour[rows, asked.int().argmax(1)] == batch.label
    assert perfect["metrics"]["swapped_query"] == pytest.approx(float(shared.double().mean()))
    assert perfect["metrics"]["swapped_query"] == pytest.approx(0.2, abs=four_errors(0.2))


def test_a_perfect_map_reaches_the_bound_of_its_grid(perfect):
    """The stub finds its cell by trying all sixteen, the oracle through the transposed projection."""
    bound = perfect["baselines"]["grid_oracle"]
    for score in MAPS:
        assert perfect["attention"][score] == pytest.approx(bound[score], rel=1e-5)
    assert bound["true_positive_strength"] > 5 * perfect["baselines"]["uniform"]["true_positive_strength"]


def test_every_bound_and_baseline_is_in_its_order(perfect):
    strength = {name: values["true_positive_strength"] for name, values in perfect["baselines"].items()}
    selective = {name: values["selectivity"] for name, values in perfect["baselines"].items()}
    assert strength["uniform"] < strength["all_objects"] < strength["all_objects_exact"] < strength["grid_oracle"]
    assert strength["shuffled"] < strength["grid_oracle"] / 3
    assert selective["uniform"] == pytest.approx(selective["all_objects_exact"])
    assert strength["all_objects_exact"] == pytest.approx(selective["all_objects_exact"])


def test_a_blind_model_scores_the_most_frequent_colour_whatever_is_asked(blind):
    assert blind["metrics"]["swapped_query"] == blind["metrics"]["accuracy"]
    assert blind["metrics"]["accuracy"] == pytest.approx(0.418, abs=four_errors(0.418))
    assert blind["attention"]["causal_follow"] < 0.6
    assert blind["attention"]["causal_hold"] < 0.95  # taking a digit away can change what is most frequent


def test_the_likeliest_location_alone_is_scored_beside_the_sum(data, batch, perfect):
    """A perfect model whose likeliest location is right about every second digit, by its number."""

    class Doubting(Clairvoyant):
        def ask(self, encoding, query):
            output = super().ask(encoding, query)
            right = (query % 2 == 0)[:, None]
            argmax = torch.where(right, output.logits, output.logits.roll(1, -1))
            return QuestionOutput(output.logits, output.acts, argmax_logits=argmax)

    found = evaluate(SceneScoring(Doubting(batch).eval(), data, limit=N, sweeps=0))
    share = float((batch.query % 2 == 0).double().mean())
    assert found["metrics"]["accuracy"] == 1
    assert found["metrics"]["accuracy_argmax_location"] == pytest.approx(share)
    low, high = found["intervals"]["accuracy_argmax_location"]
    assert low < share < high
    assert found["counts"]["accuracy_argmax_location"] == N
    assert "accuracy_argmax_location" not in found["attention"]
    assert "accuracy_argmax_location" not in perfect["metrics"]


FEW = 40
SMALL = {"channels": 4, "hidden": 4, "dropout": 0.0}


@pytest.fixture(autouse=True)
def _few_scenes_at_a_time(monkeypatch):
    monkeypatch.setitem(stream._CHUNK, "cpu", 16)


def new_task(model, **settings):
    return QuestionTask(model=model, model_config=SMALL | settings, data={"name": "mref", "glyphs": "pack"})


def test_open_gates_cost_what_the_model_says():
    price = 0.5
    task = new_task("hattnet-ctx", gate_penalty=price)
    batch = next(task.train_batches(0, batch_size=4))
    raw = task.model.forward_raw(**task.inputs(batch))
    found = task.loss(raw, batch, Default())
    plain = nn.functional.cross_entropy(raw.logits, batch["label"]).item()
    opening = sum(raw.acts[f"stage{number}"].weights.mean().item() for number in (1, 2, 3)) / 3
    assert found["loss"].item() == pytest.approx(plain + price * opening)


class Boxed(QueryModel):
    """Always answers 0, always cuts out the box ``xyxy`` of the picture."""

    def __init__(self, *box):
        super().__init__()
        self.frame = geometry.crop_frame(torch.tensor(box, dtype=torch.float64), (10, 10))

    def encode(self, images):
        return images

    def ask(self, encoding, query):
        return QuestionOutput(torch.tensor([[1.0, 0, 0, 0, 0]]).expand(len(query), 5))

    def looks(self, output):
        return (Look("crop", "crop", "crop", frame=self.frame.expand(len(output.logits), 2, 3), grid=(10, 10)),)


def test_a_crop_scores_by_the_pixels_in_its_box(data):
    """The share of the box's pixels that are the target's, and the share of the objects' pixels in it."""
    batch = data.take(torch.arange(FEW))
    masks = batch.evidence(), batch.layout.all_objects()
    target, objects = (mask[:, 20:60, :50].sum((1, 2)).double() for mask in masks)
    found = evaluate(SceneScoring(Boxed(0, 20, 50, 60), data, limit=FEW, sweeps=0))["attention"]
    assert found["true_positive_strength"] == pytest.approx((target / (40 * 50)).mean().item(), rel=1e-5)
    seen = objects > 0
    assert found["selectivity"] == pytest.approx((target[seen] / objects[seen]).mean().item(), rel=1e-5)
