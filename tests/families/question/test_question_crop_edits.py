"""Crops aimed elsewhere, of toys on real scenes: one that reads its window, one that reads the whole picture."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F
from test_question_scene_edits import Weighing, _key
from torch import Tensor

from saccade import geometry
from saccade.families.question.scenes import SceneBatch, SceneData, SceneDataConfig
from saccade.families.question.twin_scores import twin_scores
from saccade.metrics.maps.edits import mask_boxes
from saccade.models.base import Given, QueryModel
from saccade.trace import SOFT, Act, Look, ModelOutput

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


class Whole(Cropping):
    """Shows the same window and reads the whole picture."""

    def read(self, images: Tensor, crop: Tensor) -> Tensor:
        return images.mean((2, 3))


@pytest.fixture(scope="module")
def batch() -> SceneBatch:
    return SceneData(SceneDataConfig(glyphs="pack"), "test").take(torch.arange(0, 90, 3))


@torch.inference_mode()
def found(model: QueryModel, batch: SceneBatch) -> dict:
    return twin_scores(model.eval(), batch).summary()["model"]


def test_an_answer_that_is_read_from_its_window_goes_with_it(batch: SceneBatch) -> None:
    model = found(Cropping(batch), batch)
    changed, right = model["edits"]["changed"]["all"], model["edits"]["right"]["all"]
    assert right["keep_target"] > 0.9
    assert right["move"] > 0.8  # the colour of the digit that is now in the window
    assert changed["zero_target"] > 0.6
    assert model["scores"]["edit_necessity"] > 0.7
    assert model["scores"]["edit_sufficiency"] > 0.9
    assert model["baselines"]["random_cells"]["edit_sufficiency"] < 0.6


def test_an_answer_that_ignores_its_window_stays(batch: SceneBatch) -> None:
    changed = found(Whole(batch), batch)["edits"]["changed"]["all"]
    assert {name: changed[name] for name in ("zero_target", "keep_target", "keep_random", "move", "even")} == {
        "zero_target": 0, "keep_target": 0, "keep_random": 0, "move": 0, "even": 0
    }  # fmt: skip
    assert changed["zero_random"] != changed["zero_random"]  # a window as tight as its digit cannot move and hold it
