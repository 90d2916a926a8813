"""Scores of captioners whose sentences and maps are known beforehand."""

import dataclasses

import pytest
import torch
from torch import Tensor

from caption_stubs import Reciter, short_splits
from saccade import geometry
from saccade.families.caption.data import CaptionBatch, CaptionDataConfig, CaptionScenes
from saccade.families.caption.scores import RIVALS, STRENGTH, CaptionScoring
from saccade.models.sat import SatConfig, SatModel
from saccade.tasks.evaluate import evaluate
from saccade.trace import CaptionOutput, Look

SCENES = 6


@pytest.fixture(autouse=True)
def _no_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.families.caption.scores.EDITED", 0)


@pytest.fixture(scope="module")
def data() -> CaptionScenes:
    with short_splits(test=SCENES):
        return CaptionScenes(CaptionDataConfig(glyphs="pack"), "test")


@pytest.fixture(scope="module")
def batch(data: CaptionScenes) -> CaptionBatch:
    return data.of_pictures(torch.arange(SCENES))


def script(batch: CaptionBatch) -> Tensor:
    """The true sentences of the scenes, of those with the first digit recoloured, and of those with the second."""
    both = batch.layout.present[:, 1]
    second = batch[both].recolour(1).words
    return torch.cat([batch.words, batch.recolour(0).words, second])


def scored(said: Tensor, data: CaptionScenes) -> dict:
    return evaluate(CaptionScoring(Reciter(said).eval(), data, beam=1))


def test_who_tells_the_truth_is_right_in_every_score(data: CaptionScenes, batch: CaptionBatch) -> None:
    found = scored(script(batch), data)
    assert found["n"] == SCENES
    for name in ("exact_match", "bleu_1", "bleu_4", "bleu_4_nobp", "length_ratio", "rouge_l", "meteor_lite"):
        assert found["metrics"][name] == pytest.approx(1), name
    assert (found["attention"]["causal_follow"], found["attention"]["causal_hold"]) == (1, 1)
    assert found["counts"]["causal_follow"] == SCENES + int(batch.layout.present[:, 1].sum())
    assert found["counts"]["references"] == SCENES


def test_who_says_the_same_of_changed_scenes_holds_and_does_not_follow(
    data: CaptionScenes, batch: CaptionBatch
) -> None:
    both = batch.layout.present[:, 1]
    found = scored(torch.cat([batch.words, batch.words, batch.words[both]]), data)
    assert (found["attention"]["causal_follow"], found["attention"]["causal_hold"]) == (0, 1)
    assert found["metrics"]["exact_match"] == 1


class Watcher(SatModel):
    """Says anything, but looks for each word where it is told to: maps (B,T,h,w) on a grid over the picture."""

    def __init__(self, maps: Tensor) -> None:
        grid = (maps.shape[-2], maps.shape[-1])
        super().__init__(
            SatConfig(
                vocabulary=24, backbone="small", through="stage1", input_size=(100, 100), embed=2, hidden=2, attention=2
            )
        )
        self.maps = maps
        self.over = geometry.scale_shift((100 / grid[1], 100 / grid[0]), (0.0, 0.0))

    def teacher_force(self, features: Tensor, words: Tensor) -> CaptionOutput:
        output = super().teacher_force(features, words)
        output.acts["word"] = dataclasses.replace(output.acts["word"], weights=self.maps, scores=self.maps)
        return output

    def looks(self, output: CaptionOutput) -> tuple[Look, ...]:
        (look,) = super().looks(output)
        return (dataclasses.replace(look, frame=self.over),)


def test_maps_that_are_the_masks_are_strong_selective_and_point(data: CaptionScenes, batch: CaptionBatch) -> None:
    masks = batch.word_masks().float()
    found = evaluate(CaptionScoring(Watcher(masks).eval(), data, beam=1))
    for name in (STRENGTH, "selectivity", "pointing"):
        assert found["attention"][name] == pytest.approx(1), name
        for kind in ("size", "colour", "digit"):
            assert found["attention"]["by_kind"][kind][name] == pytest.approx(1)
    assert found["counts"][STRENGTH] == int(batch.has_mask.sum())
    assert found["baselines"]["grid_oracle"][STRENGTH] == pytest.approx(1)  # a grid of pixels can be perfect


def test_even_maps_are_as_strong_as_the_digits_are_large(data: CaptionScenes, batch: CaptionBatch) -> None:
    masks, named = batch.word_masks(), batch.has_mask
    even = torch.ones(*named.shape, 10, 10)
    found = evaluate(CaptionScoring(Watcher(even).eval(), data, beam=1))
    area = float(masks[named].float().mean())
    assert found["attention"][STRENGTH] == pytest.approx(area, rel=1e-4)
    assert found["baselines"]["uniform"][STRENGTH] == pytest.approx(area, rel=1e-4)
    assert tuple(found["baselines"]) == RIVALS
    strengths = [found["baselines"][who][STRENGTH] for who in RIVALS]
    assert strengths == sorted(strengths)  # evenly < on all digits < on the best cell
