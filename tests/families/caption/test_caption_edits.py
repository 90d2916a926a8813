"""The weights of one word, edited: of a captioner that reads what its map weighs, and of one that knows by heart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.families.caption.data import CaptionBatch, CaptionDataConfig, CaptionScenes
from saccade.families.caption.evidence import word_edits
from saccade.families.caption.scenes import SCENE_VOCABULARY
from saccade.metrics.maps.edits import cells_on
from saccade.models.base import Given
from saccade.models.sat import SatConfig, SatModel
from saccade.trace import Act, CaptionOutput


class Reading(SatModel):
    """Says a content word if the lit cells of its digit get a quarter of the weight or more, else <unknown>."""

    def __init__(self, batch: CaptionBatch) -> None:
        size = batch.images.shape[-1]
        super().__init__(
            SatConfig(
                vocabulary=len(SCENE_VOCABULARY), backbone="small", through="stage2", input_size=(size, size), embed=2,
                hidden=2, attention=2, longest=batch.words.shape[1],
            )
        )  # fmt: skip
        masks = batch.word_masks()
        assert masks is not None
        self.batch = batch
        on = cells_on(masks.flatten(0, 1), self.backbone.frames[self.look_stage], self.grid)  # (B·T,h,w)
        self.on = on.unflatten(0, masks.shape[:2])  # (B,T,h,w)
        even = torch.full(self.on.shape, 1 / self.on[0, 0].numel())
        own = self.on / self.on.sum((-2, -1), keepdim=True).clamp(min=1)
        self.own = torch.where(batch.has_mask[..., None, None], own, even)

    def encode(self, images: Tensor) -> Tensor:
        lit = F.adaptive_max_pool2d(images.amax(1, keepdim=True), self.grid) > 0.05  # (B,1,h,w)
        return lit.float().flatten(2).transpose(1, 2).expand(-1, -1, self.channels)

    def teacher_force(
        self, features: Tensor, words: Tensor, *, attention: Given | None = None, **_: Any
    ) -> CaptionOutput:
        rows = torch.tensor([int((self.batch.words == each).all(1).nonzero()[0]) for each in words])
        given = None if attention is None else attention["word"]
        weights = self.own[rows].clone()
        if given is not None:
            weights[:, : given.shape[1]] = given
        lit = features[..., 0].unflatten(1, self.grid)[:, None]  # (B,1,h,w)
        seen = (weights * self.on[rows] * lit).sum((-2, -1)) >= 0.25  # (B,T)
        said = torch.where(self.says(seen) | ~self.batch.has_mask[rows], words.clamp(min=0), 1)
        act = Act(weights=weights, gain=torch.ones(words.shape), active=words >= 0, emits=words)
        return CaptionOutput(10.0 * F.one_hot(said, len(SCENE_VOCABULARY)), {"word": act})

    def says(self, seen: Tensor) -> Tensor:
        return seen


class ByHeart(Reading):
    """Shows the same maps and says the true words whatever it sees."""

    def says(self, seen: Tensor) -> Tensor:
        return torch.ones_like(seen)


@pytest.fixture(scope="module")
def batch() -> CaptionBatch:
    data = CaptionScenes(CaptionDataConfig(name="scenes", glyphs="pack"), "test")
    found = data.of_pictures(torch.arange(30))
    return found[found.has_mask.any(1).nonzero().squeeze(1)]


def edits(model: Reading) -> dict:
    model.eval()
    return word_edits(model, model.encode(model.batch.images), model.batch).interventions()["model"]


def test_a_word_that_is_read_from_its_map_is_lost_without_it(batch: CaptionBatch) -> None:
    found = edits(Reading(batch))
    changed = found["edits"]["changed"]["all"]
    assert changed["zero_target"] > 0.9
    assert changed["target_removed"] > 0.9
    assert found["scores"]["edit_necessity"] == pytest.approx(1, abs=0.1)
    assert changed["zero_random"] == changed["keep_target"] == 0
    assert found["baselines"]["random_cells"]["edit_necessity"] == 0


def test_a_word_that_is_known_by_heart_stays(batch: CaptionBatch) -> None:
    changed = edits(ByHeart(batch))["edits"]["changed"]
    assert all(share == 0 for by in changed.values() for share in by.values())
