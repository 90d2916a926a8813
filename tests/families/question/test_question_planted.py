"""Planted causes: the answer rests on something that is known, and scores about the model find it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from saccade.data.scenes.backgrounds import SIDE
from saccade.data.scenes.drawing import COLOURS, rgb
from saccade.families.question.scenes import SceneBatch, SceneData, SceneDataConfig
from saccade.families.question.scores import SceneScoring
from saccade.families.question.twins import twin_scores
from saccade.models.base import QueryModel
from saccade.tasks.evaluate import evaluate
from saccade.trace import Act, Look, ModelOutput

N = 40
PALETTE = rgb(torch.arange(len(COLOURS)), torch.zeros(len(COLOURS), dtype=torch.int64)).float() / 255  # (5,3)


class CornerReader(QueryModel):
    """Answers the colour of the picture's corner, and looks there."""

    def __init__(self) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))

    def encode(self, images: Tensor) -> Tensor:
        return images

    def ask(self, encoding: Tensor, query: Tensor) -> ModelOutput:
        seen = encoding[:, :, 0, 0]  # (B,3)
        weights = torch.zeros(len(query), 20, 20)
        weights[:, :2, :2] = 0.25
        return ModelOutput(-50 * torch.cdist(seen, PALETTE), {"cell": Act(weights=weights)})

    def looks(self, output: ModelOutput) -> tuple[Look, ...]:
        frame = torch.tensor([[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]], dtype=torch.float64)
        return (Look("cell", "soft", "multiplier", output.acts["cell"].weights, norm="softmax", frame=frame),)


def data(planted: str) -> SceneData:
    return SceneData(SceneDataConfig(glyphs="pack", planted=planted), "test")


def taken(planted: str) -> SceneBatch:
    return data(planted).take(torch.arange(N))


def test_a_corner_is_the_answer_whatever_is_asked():
    plain, planted = taken("none"), taken("corner")
    corner = planted.images[:, :, 0, 0]  # (B,3)
    assert torch.equal(torch.cdist(corner, PALETTE).argmin(1), planted.label)
    assert torch.equal(planted.query, plain.query)
    differs = (planted.images != plain.images).any(1)  # (B,H,W)
    assert not differs[:, SIDE:].any()
    assert not differs[:, :, SIDE:].any()
    assert len(planted.label.unique()) == len(COLOURS)
    again = planted.recolour_target()
    assert torch.equal(again.images[:, :, 0, 0], corner)  # it stays when a digit is changed


def test_the_largest_digit_is_the_answer_whatever_is_asked():
    planted = taken("largest")
    largest = torch.where(planted.layout.present, planted.layout.side, 0).argmax(1)
    assert torch.equal(planted.label, planted.layout.colour[torch.arange(N), largest])
    assert (planted.label != taken("none").label).any()


def test_a_blind_question_tells_nothing():
    plain, planted = taken("none"), taken("blind")
    assert torch.equal(planted.label, plain.label)
    assert (planted.query == plain.query).double().mean() < 0.35
    assert len(planted.query.unique()) >= 8
    together = SceneData(SceneDataConfig(glyphs="pack", planted="corner", asks=2), "train").take(
        torch.arange(8), together=2
    )
    assert torch.equal(together.label[::2], together.label[1::2])


def test_the_mask_of_the_target_loses_and_the_planted_cause_wins():
    found = twin_scores(CornerReader().eval(), taken("corner")).summary()
    own, target = found["model"]["scores"], found["model"]["baselines"]["target_mask"]
    assert (own["cause_top"], target["cause_top"]) == (1, 0)
    assert own["cause_pairs"] > 0.95 > 0.6 > target["cause_pairs"]
    assert own["misplaced"] < 0.05
    assert target["misplaced"] == pytest.approx(1)
    # about the scene it is the other way round: the mask of the target wins, the planted cause has nothing
    scene, mask = found["scene"]["scores"], found["scene"]["baselines"]["target_mask"]
    assert [scene[name] for name in ("map_follow", "map_turn", "map_specific")] == [0, 0, 0.5]
    assert [mask[name] for name in ("map_follow", "map_turn", "map_specific")] == pytest.approx([1, 1, 1])


def test_a_planted_set_is_scored_without_a_target_to_follow():
    found = evaluate(SceneScoring(CornerReader().eval(), data("corner"), limit=N, sweeps=0))
    assert found["metrics"]["accuracy"] > 0.95
    assert "causal_follow" not in found["attention"]
    assert found["attention"]["causal_hold"] > 0.95
