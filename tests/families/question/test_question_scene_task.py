"""The attribute task: batches, the loss, what is refused, the model folder; and edited attention of two toys."""

import itertools
import math
from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import saccade.data.scenes.stream as stream
import saccade.families.question.scenes as attributes
from saccade import geometry
from saccade.data.scenes.drawing import COLOURS, rgb
from saccade.errors import ConfigError
from saccade.families.question.scenes import SceneBatch, SceneData, SceneDataConfig
from saccade.families.question.task import CrossEntropy, Default, QuestionTask, Reinforce
from saccade.families.question.twins import twin_scores
from saccade.metrics.maps.edits import mask_boxes
from saccade.models.base import Given, QueryModel
from saccade.models.hattnet import HAttNetConfig, HAttNetModel
from saccade.trace import SOFT, Act, Look, ModelOutput, QuestionOutput

SMALL = {"channels": 4, "hidden": 4, "dropout": 0.0}
TRIPLES = 50


@pytest.fixture(autouse=True)
def _small_splits(monkeypatch):
    """Few scenes are made at a time, and finite splits are short."""
    monkeypatch.setitem(stream._CHUNK, "cpu", 16)
    monkeypatch.setitem(attributes._SIZES["authors"], "train", TRIPLES)
    monkeypatch.setitem(attributes._SIZES["unlimited"], "val", 23)


def new_task(*, protocol="unlimited", seed=0, **data) -> QuestionTask:
    return QuestionTask(
        model="soft", model_config=SMALL, data={"name": "mref", "glyphs": "pack", **data}, protocol=protocol, seed=seed
    )


def batches(task, count, *, start=0, **options):
    return list(itertools.islice(task.train_batches(start, **options), count))


def triples(task, numbers, batch_size):
    """Which triples a finite task's batches hold."""
    return torch.cat([task._members(task.split("train"), number, batch_size) for number in numbers]).tolist()


def test_a_picture_that_is_asked_several_times_comes_once():
    once, thrice = new_task(), new_task(asks=3)
    (plain,), (batch,) = batches(once, 1, batch_size=4), batches(thrice, 1, batch_size=12)
    assert torch.equal(batch["images"], plain["images"])
    assert batch["images"].is_contiguous(memory_format=torch.channels_last)
    assert (len(batch["query"]), len(batch["label"])) == (12, 12)
    assert torch.equal(batch["query"][::3], plain["query"])
    found = thrice.loss(thrice.model.forward_raw(**thrice.inputs(batch)), batch, Default())
    assert found["loss"].requires_grad
    with pytest.raises(ConfigError, match="a batch of 10 cannot be split into scenes that are asked 3 times"):
        batches(thrice, 1, batch_size=10)


def test_an_epoch_visits_each_triple_at_most_once_and_the_next_in_another_order():
    task = new_task(protocol="authors")
    per_epoch = task.steps_per_epoch(8)
    assert per_epoch == TRIPLES // 8
    first, second = (triples(task, range(epoch * per_epoch, (epoch + 1) * per_epoch), 8) for epoch in (0, 1))
    for order in (first, second):
        assert len(set(order)) == len(order) == per_epoch * 8
        assert set(order) <= set(range(TRIPLES))
    assert first != second
    assert first != sorted(first)
    assert triples(new_task(protocol="authors"), [0], TRIPLES) != list(range(TRIPLES))
    assert sorted(triples(task, [0], TRIPLES)) == list(range(TRIPLES))


@pytest.mark.parametrize("loss", [Default(), CrossEntropy()])
def test_loss_hand_worked(loss):
    """Equal logits: log 2 of two answers. Odds 3:1 for the wrong one: −log 1/4. Arg-max right once in two."""
    raw = QuestionOutput(**{"logits": torch.tensor([[1.0, 1.0], [math.log(3), 0.0]])})
    found = new_task().loss(raw, {"label": torch.tensor([0, 1])}, loss)
    assert set(found) == {"loss", "accuracy"}
    assert float(found["loss"]) == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert float(found["accuracy"]) == 0.5


def drawn(probabilities, log_prob=(-1.0, -2.0)):
    """What a model that draws two locations gives for one picture: the share of the right answer at each."""
    shares = torch.tensor([[[share, 1 - share] for share in probabilities]])
    sampled = torch.tensor([log_prob], requires_grad=True)
    return QuestionOutput(
        logits=shares[:, 0].log(),
        sampled_logits=shares.log().requires_grad_(),
        sampled_log_prob=sampled,
        entropy=torch.tensor([math.log(4)]),
    )


@pytest.mark.parametrize("loss", [Default(), Reinforce()])
def test_drawn_locations_are_taught_by_what_they_answer(loss):
    """Shares 1/2 and 1/8 of the right answer: rewards −log 2 and −log 8, each the other's baseline, 2·log 2 apart.

    The bound is their mean, −2·log 2; four cells equally likely have an entropy of 2·log 2, weighed with 0.002.
    """
    raw = drawn((0.5, 0.125))
    found = new_task().loss(raw, {"label": torch.tensor([0])}, loss)
    assert found["loss"].item() == pytest.approx(2 * math.log(2) * (1 - 0.002))
    found["loss"].backward()
    advantage = 2 * math.log(2)
    assert raw.sampled_log_prob.grad.tolist() == [pytest.approx([-advantage / 2, advantage / 2])]
    assert raw.sampled_logits.grad.abs().sum() > 0


CELL = 5


class Weighing(QueryModel):
    """Its answer is the colour nearest to Σ weights · pixels, so it rests on its map and on nothing else.

    It looks at the cells of the digit asked for, where it recognises the scene; else evenly.
    """

    look_specs: ClassVar = {"cell": SOFT.at(torch.tensor([[CELL, 0.0, 0.0], [0.0, CELL, 0.0]], dtype=torch.float64))}

    def __init__(self, batch: SceneBatch) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        masks = F.avg_pool2d(batch.layout.masks().float(), CELL)  # (B,N,20,20)
        self.places = {_key(image): row for row, image in enumerate(batch.images)}
        self.masks, self.classes = masks, batch.layout.classes.where(batch.layout.present, -1)
        self.palette = F.normalize(rgb(torch.arange(len(COLOURS)), torch.zeros(5, dtype=torch.int64)).float(), dim=1)

    def encode(self, images: Tensor) -> Tensor:
        return images

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> ModelOutput:
        features = F.avg_pool2d(encoding, CELL)  # (B,3,20,20)
        own = torch.stack([self.aim(image, int(asked)) for image, asked in zip(encoding, query)])  # (B,20,20)
        given = self.given(attention, "cell", own.shape)
        weights = own if given is None else given
        return ModelOutput(self.answer(features, weights), {"cell": Act(weights=weights)})

    def aim(self, image: Tensor, query: int) -> Tensor:
        row = self.places.get(_key(image))
        side = image.shape[-1] // CELL
        if row is None or not bool((self.classes[row] == query).any()):
            return torch.full((side, side), 1 / side**2)
        mask = self.masks[row, int((self.classes[row] == query).nonzero()[0])]
        mask = mask * (mask > min(0.25, 0.99 * float(mask.max())))  # cells that lie on the digit
        return mask / mask.sum()

    def answer(self, features: Tensor, weights: Tensor) -> Tensor:
        context = torch.einsum("bchw,bhw->bc", features, weights)  # (B,3)
        return 20 * F.normalize(context, dim=1) @ self.palette.T


class Ignoring(Weighing):
    """Shows the same map and answers by all pixels alike."""

    def answer(self, features: Tensor, weights: Tensor) -> Tensor:
        return super().answer(features, torch.ones_like(weights))


def _key(image: Tensor) -> bytes:
    return image.contiguous().numpy().tobytes()


@pytest.fixture(scope="module")
def batch() -> SceneBatch:
    return SceneData(SceneDataConfig(glyphs="pack"), "test").take(torch.arange(0, 90, 3))


@torch.inference_mode()
def found(model: QueryModel, batch: SceneBatch) -> dict:
    return twin_scores(model.eval(), batch).summary()["model"]


def test_an_answer_that_rests_on_its_map_goes_with_it(batch: SceneBatch):
    model = found(Weighing(batch), batch)
    changed, right = model["edits"]["changed"]["all"], model["edits"]["right"]["all"]
    assert model["scores"]["edit_necessity"] > 0.8
    assert model["scores"]["edit_sufficiency"] == pytest.approx(1, abs=0.1)
    assert model["baselines"]["random_cells"]["edit_necessity"] < 0.05
    assert model["baselines"]["random_cells"]["edit_sufficiency"] < 0.6
    assert changed["keep_target"] == 0  # its weights lie there alone
    assert right["move"] > 0.85  # it tells the colour of the digit that the weights went to
    assert changed["exchanged"] > 0.5
    assert model["counts"]["edit_necessity"] > 20


def test_an_answer_that_ignores_its_map_stays(batch: SceneBatch):
    model = found(Ignoring(batch), batch)
    changed = model["edits"]["changed"]["all"]
    edits = [name for name in changed if name not in ("target_removed", "target_alone")]
    assert len(edits) == 9
    assert all(changed[name] == 0 for name in edits)
    assert model["scores"]["edit_necessity"] == 0
    rival = model["baselines"]["random_cells"]["edit_sufficiency"]
    assert model["scores"]["edit_sufficiency"] == rival  # any cells will do


def test_looks_are_edited_together_and_alone():
    torch.manual_seed(0)
    few = SceneData(SceneDataConfig(glyphs="pack"), "test").take(torch.arange(0, 60, 6))
    edits = found(HAttNetModel(HAttNetConfig(channels=4, hidden=4)), few)["edits"]
    alone = [f"stage{n}, later {way}" for n in (1, 2, 3) for way in ("recomputed", "frozen")]
    assert list(edits["changed"]) == ["all", *alone, "stage4"]
    assert set(edits["changed"]["stage4"]) == {"zero_target", "even", "permuted", "exchanged"}


GRID = (20, 20)


class Cropping(Weighing):
    """Cuts out the digit asked for, where it recognises the scene, else the whole; says the colour of the window."""

    look_specs: ClassVar = {"crop": SOFT}  # its name alone counts

    def __init__(self, batch: SceneBatch) -> None:
        super().__init__(batch)
        boxes = mask_boxes(batch.layout.masks().flatten(0, 1))
        self.boxes = boxes.unflatten(0, batch.layout.present.shape).nan_to_num()  # (B,N,4)

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> ModelOutput:
        own = torch.stack([self.window(image, int(asked)) for image, asked in zip(encoding, query)])  # (B,4)
        frame = geometry.crop_frame(own, GRID)
        given = self.given(attention, "crop", frame.shape)
        frame = frame if given is None else given
        seen = self.read(encoding, geometry.sample(encoding, frame.to(encoding), GRID))
        return ModelOutput(20 * F.normalize(seen, dim=1) @ self.palette.T, {"crop": Act(theta=frame)})

    def window(self, image: Tensor, query: int) -> Tensor:
        row = self.places.get(_key(image))
        if row is None or not bool((self.classes[row] == query).any()):
            return torch.tensor([0.0, 0.0, 100.0, 100.0], dtype=torch.float64)
        return self.boxes[row, int((self.classes[row] == query).nonzero()[0])]

    def read(self, images: Tensor, crop: Tensor) -> Tensor:
        return crop.mean((2, 3))

    def looks(self, output: ModelOutput) -> tuple[Look, ...]:
        return (Look("crop", "crop", "crop", frame=output.acts["crop"].theta, grid=GRID),)


def test_an_answer_that_is_read_from_its_window_goes_with_it(batch: SceneBatch) -> None:
    model = found(Cropping(batch), batch)
    changed, right = model["edits"]["changed"]["all"], model["edits"]["right"]["all"]
    assert right["keep_target"] > 0.9
    assert right["move"] > 0.8  # the colour of the digit that is now in the window
    assert changed["zero_target"] > 0.6
    assert model["scores"]["edit_necessity"] > 0.7
    assert model["scores"]["edit_sufficiency"] > 0.9
    assert model["baselines"]["random_cells"]["edit_sufficiency"] < 0.6
