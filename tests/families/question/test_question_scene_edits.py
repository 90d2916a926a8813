"""Edited attention of two toys on real scenes: one whose answer is what its map weighs, one whose answer ignores it."""

from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.data.scenes.drawing import COLOURS, rgb
from saccade.families.question.scenes import SceneBatch, SceneData, SceneDataConfig
from saccade.families.question.twins import twin_scores
from saccade.metrics.maps.edits import mask_boxes
from saccade.models.base import Given, QueryModel
from saccade.models.hattnet import HAttNetConfig, HAttNetModel
from saccade.trace import SOFT, Act, Look, ModelOutput

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
