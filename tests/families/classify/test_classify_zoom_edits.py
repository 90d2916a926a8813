"""Nested crops aimed elsewhere: of a classifier that needs its finest crop on the mark, and of one that does not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.attention.spatial_transformer import given_window
from saccade.data.pictures.labelled import LabelledBatch
from saccade.families.classify.zoom_scores import zoom_edits
from saccade.metrics.maps.edits import covers_evidence, crop_boxes
from saccade.models.base import Given
from saccade.models.racnn import CROPS, RacnnModel
from saccade.trace import Act, LabelOutput
from tiny_models import tiny_config

SIDE = (31, 34)


def pictures(count: int = 8) -> LabelledBatch:
    """A lit mark of 4 × 4 pixels in each picture, on a chequered ground."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(count, 3, *SIDE, generator=generator) * 0.1
    evidence = torch.zeros(count, *SIDE, dtype=torch.bool)
    for row in range(count):
        x, y = 3 + 3 * row % 24, 4 + 5 * row % 20
        evidence[row, y : y + 4, x : x + 4] = True
        images[row, :, evidence[row]] = 1.0
    return LabelledBatch(images, torch.arange(count) % 3, evidence)


class Near(RacnnModel):
    """Right where the second crop covers a lit mark, and one class further where it does not."""

    def __init__(self, batch: LabelledBatch) -> None:
        super().__init__(tiny_config(RacnnModel))
        self.batch = batch
        self.own = {name: self._round(half) for name, half in zip(CROPS, (8.0, 5.0))}

    def _round(self, half: float) -> Tensor:
        found = []
        for mask in self.batch.evidence:
            y, x = (each.float().mean() for each in mask.nonzero().T)
            found.append([max(0.0, x - half), max(0.0, y - half), min(34.0, x + half), min(31.0, y + half)])
        return geometry.crop_frame(torch.tensor(found, dtype=torch.float64), self.config.crop)

    def answer(
        self, encoding: Tensor, *, attention: Given | None = None, last: str = "scale3", responses: bool = False
    ) -> LabelOutput:
        rows = (encoding.flatten(1)[:, None] - self.batch.images.flatten(1)).abs().sum(2).argmin(1)  # (n,)
        frames = {name: self.own[name][rows] for name in CROPS} | dict(attention or {})
        lit = (encoding[:, 0] > 0.9) & self.batch.evidence[rows]  # (n,H,W)
        boxes = crop_boxes(frames[CROPS[-1]], self.config.crop)
        right = self.sees(covers_evidence(boxes, lit).nan_to_num() > 0.5)
        said = torch.where(right, self.batch.label[rows], (self.batch.label[rows] + 1) % 3)
        logits = 5.0 * F.one_hot(said, 3)
        acts = {name: Act(theta=given_window(frame, self.config.crop, encoding)) for name, frame in frames.items()}
        return LabelOutput(logits, acts, scale_logits=logits[:, None].expand(-1, 3, -1))

    def sees(self, covered: Tensor) -> Tensor:
        return covered


class Careless(Near):
    """Says the same wherever its crops are."""

    def sees(self, covered: Tensor) -> Tensor:
        return torch.ones_like(covered)


def edits(model: Near) -> dict[str, Any]:
    raw = model.eval().answer(model.batch.images)
    found = zoom_edits(model, raw, model.batch, torch.arange(len(model.batch.images)))
    return found.interventions()["model"]


def test_an_answer_that_needs_its_crop_goes_with_it() -> None:
    found = edits(Near(pictures()))
    changed, right = found["edits"]["changed"]["all"], found["edits"]["right"]["all"]
    assert changed["zero_target"] == changed["target_removed"] == 1
    assert changed["keep_target"] == 0
    assert right["keep_target"] == 1
    assert found["scores"] == {"edit_necessity": pytest.approx(1)}  # there is no ceiling for sufficiency
    assert found["edits"]["changed"]["scale2, later frozen"]["zero_target"] == 0  # the finest crop stays where it was
    assert found["edits"]["changed"]["scale3"]["zero_target"] == 1


def test_an_answer_that_does_not_look_stays() -> None:
    changed = edits(Careless(pictures()))["edits"]["changed"]
    shares = [share for by in changed.values() for share in by.values() if share == share]
    assert shares
    assert set(shares) == {0.0}


def test_without_evidence_or_proposals_there_is_nothing_to_edit() -> None:
    batch = pictures()
    model = Near(batch)
    raw = model.answer(batch.images)
    bare = LabelledBatch(batch.images, batch.label, None)
    assert len(zoom_edits(model, raw, bare, torch.arange(8))) == 0
