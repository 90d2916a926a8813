"""The attention to one label, edited: of a reader that names what it is aimed at, and of one that knows by heart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.families.multiset.data import MultisetBatch, MultisetDataConfig, MultisetScenes
from saccade.families.multiset.scores import glimpse_edits, read_all
from saccade.metrics.maps.edits import cells_on
from saccade.models.base import Given
from saccade.models.hsal import HsalConfig, HsalModel
from saccade.trace import Act, MultisetOutput

STOP = 10


class Aimed(HsalModel):
    """Reads digit t if the mask or the glimpses of step t are on it and it is in the picture."""

    def __init__(self, batch: MultisetBatch) -> None:
        super().__init__(HsalConfig(backbone="small", through="stage2", input_size=(100, 100), hidden=8, meta_hidden=8))
        self.batch = batch
        masks = batch.masks()  # (B,M,H,W)
        on = cells_on(masks.flatten(0, 1), self.backbone.frames[self.look_stage], self.grid)
        self.on = on.unflatten(0, masks.shape[:2])  # (B,M,h,w)
        self.pixels = masks

    def encode(self, images: Tensor) -> Tensor:
        return images

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> MultisetOutput:
        return self.read(encoding, attention=attention)

    def read(self, encoding: Tensor, *_: Any, attention: Given | None = None) -> MultisetOutput:
        rows, there = self.recognised(encoding)  # (B,), (B,M)
        steps, most = self.steps, self.on.shape[1]
        maps = torch.zeros(len(rows), steps, *self.grid)
        maps[:, :most] = self.on[rows].float()
        aimed = maps.flatten(2).argmax(-1)[..., None].expand(-1, -1, self.config.glimpses).clone()  # (B,T,k)
        if attention is not None:
            maps[:, : attention["covert"].shape[1]] = attention["covert"]
            cells = attention["glimpse"].flatten(2).argmax(-1).unflatten(1, (-1, self.config.glimpses))
            aimed[:, : cells.shape[1]] = cells
        seen = (maps[:, :most] * self.on[rows]).flatten(2).any(2)  # (B,M)
        hit = self.on[rows].flatten(2).gather(2, aimed[:, :most]).any(2)  # (B,M)
        said = torch.full((len(rows), steps), STOP)
        labels = self.batch.labels[rows]
        for row in range(len(rows)):
            read = [int(labels[row, m]) for m in range(most) if bool(there[row, m] & self.reads(seen, hit)[row, m])]
            said[row, : len(read)] = torch.tensor(read, dtype=torch.long)
        active = torch.ones_like(said, dtype=torch.bool)
        label = {"active": active & (said != STOP), "emits": said}
        weights = F.one_hot(aimed, self.grid[0] * self.grid[1]).float().flatten(1, 2).unflatten(-1, self.grid)
        many = self.config.glimpses
        acts = {name: Act(weights=torch.zeros_like(maps), **label) for name in self.look_specs}
        acts["covert"].weights = maps
        acts["glimpse"] = Act(
            weights=weights,
            choice=aimed.flatten(1),
            log_prob=torch.zeros(len(rows), steps * many),
            **{name: each.repeat_interleave(many, 1) for name, each in label.items()},
        )
        return MultisetOutput(F.one_hot(said, STOP + 1).float(), acts, said=said, active=active, location=aimed)

    def recognised(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Which scene each picture is of, and which of its digits are drawn."""
        same = (images[:, None, 0] - self.batch.images[None, :, 0]).abs() < 1e-4  # (n,B,H,W)
        rows = (same & (images[:, None, 0] > 0.1)).flatten(2).sum(2).argmax(1)
        apart = (images[:, 0] - self.batch.images[rows, 0]).abs()[:, None] * self.pixels[rows]  # (n,M,H,W)
        return rows, (apart.flatten(2).sum(2) < 1) & self.batch.present[rows]

    def reads(self, seen: Tensor, hit: Tensor) -> Tensor:
        return seen | hit


class ByHeart(Aimed):
    """Shows the same and reads every digit that is drawn."""

    def reads(self, seen: Tensor, hit: Tensor) -> Tensor:
        return torch.ones_like(seen)


@pytest.fixture(scope="module")
def batch() -> MultisetBatch:
    return MultisetScenes(MultisetDataConfig(name="mnist-set", glyphs="pack"), "test").take(torch.arange(12))


def edits(model: Aimed) -> dict:
    raw, trace = read_all(model.eval(), model.batch.images, (100, 100))
    return glimpse_edits(model, raw, trace, model.batch, (100, 100)).interventions()["model"]


def test_a_label_that_is_read_where_it_is_aimed_at_is_lost_elsewhere(batch: MultisetBatch) -> None:
    found = edits(Aimed(batch))
    changed = found["edits"]["changed"]["all"]
    assert changed["zero_target"] == changed["target_removed"] == 1
    assert changed["zero_random"] == changed["keep_target"] == changed["zero_heaviest"] == 0
    assert found["scores"]["edit_necessity"] == pytest.approx(1)
    assert found["scores"]["edit_sufficiency"] == pytest.approx(1)
    assert found["baselines"]["random_cells"] == {"edit_necessity": 0, "edit_sufficiency": pytest.approx(0)}


def test_a_label_that_is_known_by_heart_stays(batch: MultisetBatch) -> None:
    changed = edits(ByHeart(batch))["edits"]["changed"]
    assert changed["all"].pop("target_removed") == 1
    assert all(share == 0 for by in changed.values() for share in by.values())
