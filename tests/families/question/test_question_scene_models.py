"""What the attribute task does for particular models: the price of open gates, and scores of crops."""

import json
import math

import pytest
import torch
from torch import nn

import saccade.data.scenes.stream as stream
from saccade import geometry
from saccade.families import model_spec
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.families.question.scores import SceneScoring
from saccade.families.question.task import Default, QuestionTask
from saccade.metrics.maps.baselines import grids_of
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.metrics.maps.scorer import BASELINES
from saccade.models.base import QueryModel
from saccade.models.folder import load_model
from saccade.tasks.evaluate import evaluate
from saccade.trace import Look, QuestionOutput
from saccade.zoo import resolve

N = 40
SMALL = {"channels": 4, "hidden": 4, "dropout": 0.0}


@pytest.fixture(autouse=True)
def _few_scenes_at_a_time(monkeypatch):
    monkeypatch.setitem(stream._CHUNK, "cpu", 16)


@pytest.fixture(scope="module")
def data():
    return SceneData(SceneDataConfig(glyphs="pack"), "test")


def new_task(model, **settings):
    return QuestionTask(model=model, model_config=SMALL | settings, data={"name": "mref", "glyphs": "pack"})


def test_a_penalty_is_added_and_told():
    """Equal logits of two answers: ln 2. Penalties 0.1 and 0.3: 0.2 on top."""
    raw = QuestionOutput(**{"logits": torch.zeros(2, 2), "penalty": torch.tensor([0.1, 0.3])})
    found = new_task("soft").loss(raw, {"label": torch.tensor([0, 1])}, Default())
    assert set(found) == {"loss", "accuracy", "penalty"}
    assert found["penalty"].item() == pytest.approx(0.2)
    assert found["loss"].item() == pytest.approx(math.log(2) + 0.2)


@pytest.mark.parametrize("price", [0.0, 0.5])
def test_open_gates_cost_what_the_model_says(price):
    torch.manual_seed(0)
    task = new_task("hattnet-ctx", gate_penalty=price)
    batch = next(task.train_batches(0, batch_size=4))
    raw = task.model.forward_raw(**task.inputs(batch))
    found = task.loss(raw, batch, Default())
    plain = nn.functional.cross_entropy(raw.logits, batch["label"]).item()
    opening = sum(raw.acts[f"stage{number}"].weights.mean().item() for number in (1, 2, 3)) / 3
    assert ("penalty" in found) == (price > 0)
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
    batch = data.take(torch.arange(N))
    target, objects = (mask[:, 20:60, :50].sum((1, 2)).double() for mask in (batch.evidence(), batch.objects()))
    found = evaluate(SceneScoring(Boxed(0, 20, 50, 60), data, limit=N, sweeps=0))["attention"]
    assert found["true_positive_strength"] == pytest.approx((target / (40 * 50)).mean().item(), rel=1e-5)
    seen = objects > 0
    assert found["selectivity"] == pytest.approx((target[seen] / objects[seen]).mean().item(), rel=1e-5)


def test_baselines_of_a_crop_live_on_the_pixels_without_an_oracle(data):
    found = evaluate(SceneScoring(Boxed(0, 20, 50, 60), data, limit=N, sweeps=0))["baselines"]
    assert list(found) == [name for name in BASELINES if name != "grid_oracle"]
    area = data.take(torch.arange(N)).evidence().double().mean().item()
    assert found["uniform"]["true_positive_strength"] == pytest.approx(area, rel=1e-5)
    assert found["all_objects"] == pytest.approx(found["all_objects_exact"], rel=1e-4)


def test_a_turned_window_is_scored_whole():
    """From the catalog to plain numbers, sweeps included."""
    torch.manual_seed(0)
    model = model_spec("stn").build(SMALL).eval()
    nn.init.normal_(model.transformer.to_theta.weight, std=1.0)
    found = QuestionTask.evaluate(model, {"name": "mref", "glyphs": "pack"}, "test", limit=30, sweeps=2)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["attention"]["by_look"] == {}
    assert 0 < found["attention"]["true_positive_strength"] < 1
    assert {"deletion", "insertion", "causal_follow", "selectivity"} <= set(found["attention"])
    assert "grid_oracle" not in found["baselines"]


SCENES = 40


@pytest.fixture(scope="module")
def batch():
    data = SceneData(SceneDataConfig("mref", glyphs="pack"), "test")
    return data.take(data.one_per_scene(SCENES))


def looked(name, batch):
    """The trace of the shipped model ``name`` on the scenes."""
    model, _ = load_model(resolve(name), "cpu")
    size = (batch.images.shape[-2], batch.images.shape[-1])
    with torch.no_grad():
        return model.wrap(model.forward_raw(batch.images, batch.query), size).trace, size


def strengths(name, batch):
    """True-positive strength (B,) of the model's maps, and of the bound of their grids."""
    trace, size = looked(name, batch)
    bound = grids_of(trace, size).oracle(batch.evidence())
    return tuple(true_positive_strength(maps, batch.evidence()) for maps in (trace.image_map("total"), bound))


@pytest.mark.parametrize("name", ["soft-mref", "hard-mref", "hattnet-mref", "hattnet-ctx-sparse-mref"])
def test_no_map_exceeds_the_bound_of_its_grids(name, batch):
    found, bound = strengths(name, batch)
    assert bool((found <= bound + 1e-6).all())
    assert float(bound.mean()) < 1.001


def test_a_product_of_gates_is_measured_against_all_of_its_grids(batch):
    """The sparse model is far above the best cell of its last grid alone, which is no bound for it."""
    trace, size = looked("hattnet-ctx-sparse-mref", batch)
    grids = grids_of(trace, size)
    assert [cells for _, cells in grids.grids] == [(49, 49), (23, 23), (10, 10), (4, 4)]
    found, bound = strengths("hattnet-ctx-sparse-mref", batch)
    (_, one_grid) = strengths("soft-mref", batch)
    assert float((found > one_grid).double().mean()) > 0.9
    assert float(bound.mean()) > 0.99
