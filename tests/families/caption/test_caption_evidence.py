"""What words rest on: altered photographs, and edited weights of one word."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.families.caption.data import CaptionBatch, CaptionDataConfig, CaptionScenes
from saccade.families.caption.evidence import CONTENT, FUNCTION, add_words, kind_of, word_edits
from saccade.families.caption.scenes import SCENE_VOCABULARY
from saccade.families.caption.vocabulary import Vocabulary
from saccade.metrics.maps.edits import cells_on
from saccade.models.base import Given
from saccade.models.sat import SatConfig, SatModel
from saccade.tasks.evaluate import Measurements
from saccade.trace import Act, CaptionOutput

WORDS = Vocabulary(("a", "dog", "runs", "cat", "sleeps", "on"))
DOG, RUNS, CAT, SLEEPS = (WORDS.number(word) for word in ("dog", "runs", "cat", "sleeps"))
SIDE = 40
COLUMNS = {DOG: (0, 4), RUNS: (20, 24), CAT: (8, 12), SLEEPS: (32, 36)}
"""A tenth of the picture for each content word: as bright as these columns, so likely is the word."""


class ReadsColumns(SatModel):
    """A content word has the mean brightness of its columns as log p; it looks where ``maps`` says, by id."""

    def __init__(self, maps: dict[int, Tensor]) -> None:
        super().__init__(
            SatConfig(
                vocabulary=len(WORDS), backbone="small", through="stage1", input_size=(SIDE, SIDE), embed=2, hidden=2,
                attention=2,
            )
        )  # fmt: skip
        self.maps = maps

    def encode(self, images: Tensor) -> Tensor:
        return images.mean(1)  # (B,H,W): it sees every pixel

    def teacher_force(self, features: Tensor, words: Tensor) -> CaptionOutput:
        batch, steps = words.shape
        logits = torch.full((batch, steps, len(WORDS)), -30.0)
        logits[..., 0] = 30.0  # so that a logit is a log-probability, less 30
        maps = torch.ones(batch, steps, SIDE, SIDE)
        for row, column in [(row, column) for row in range(batch) for column in range(steps)]:
            word = int(words[row, column])
            if word in COLUMNS:
                first, last = COLUMNS[word]
                logits[row, column, word] = features[row, :, first:last].mean()
            maps[row, column] = self.maps.get(word, maps[row, column])
        act = Act(weights=maps, scores=maps, gain=torch.ones(batch, steps), active=words >= 0, emits=words)
        return CaptionOutput(logits, {"word": act})

    def looks(self, raw):
        (look,) = super().looks(raw)
        return (replace(look, frame=geometry.identity(), norm="none"),)


def columns_map(first: int, last: int) -> Tensor:
    found = torch.zeros(SIDE, SIDE)
    found[:, first:last] = 1
    return found


ORACLE = {word: columns_map(*columns) for word, columns in COLUMNS.items()}


def scored(maps: dict[int, Tensor]) -> Measurements:
    """ "a dog runs on" of a bright picture, "a cat sleeps on" of a dark one."""
    images = torch.stack([torch.full((3, SIDE, SIDE), shade) for shade in (0.9, 0.1)])
    said = torch.tensor(
        [[WORDS.number(word) for word in text.split()] + [0] for text in ("a dog runs on", "a cat sleeps on")]
    )
    scores = Measurements()
    add_words(scores, ReadsColumns(maps).eval(), images, said, torch.tensor([0, 1]), WORDS)
    return scores


def test_an_oracle_has_all_that_a_patch_takes() -> None:
    """A patch of the dark picture takes 0.8 nats of a word whose columns it covers, and nothing of the other word."""
    scores = scored(ORACLE)
    found = scores.acts.values()
    content = ~found["word_evidence_patch_raw"].isnan()
    assert found["word_evidence_patch_raw"][content].tolist() == pytest.approx([0.8, 0.8, -0.8, -0.8], abs=1e-4)
    assert found["word_drop_patch_raw"][content].tolist() == pytest.approx([0.8, 0.8, -0.8, -0.8], abs=1e-4)
    assert scores.columns["act_picture"][content].tolist() == [0, 0, 1, 1]
    assert scores.acts.means()["word_map_distance"] == pytest.approx(1)
    assert scores.acts.means()["function_evidence_patch_raw"] == pytest.approx(0, abs=1e-6)
    assert scores.columns["altered"].tolist() == [0, 1]


def test_constant_maps_have_no_evidence_and_no_distance() -> None:
    scores = scored({})
    means = scores.acts.means()
    assert means["word_evidence_blur_raw"] == means["word_evidence_patch_raw"] == 0
    assert means["word_map_distance"] == pytest.approx(0)
    assert scores.rivals.means()["noise"].keys() == {"word_evidence_blur_raw", "word_evidence_patch_raw"}


def test_words_are_content_function_or_neither() -> None:
    kinds = [kind_of(WORDS.number(word), WORDS) for word in ("a", "dog", "on", "unheard")]
    assert kinds == [FUNCTION, CONTENT, FUNCTION, None]
    assert kind_of(0, WORDS) is None


class Reading(SatModel):
    """Says a content word if the lit cells of its digit get a quarter of the weight or more, else <unknown>."""

    def __init__(self, scenes: CaptionBatch) -> None:
        size = scenes.images.shape[-1]
        super().__init__(
            SatConfig(
                vocabulary=len(SCENE_VOCABULARY), backbone="small", through="stage2", input_size=(size, size), embed=2,
                hidden=2, attention=2, longest=scenes.words.shape[1],
            )
        )  # fmt: skip
        masks = scenes.word_masks()
        self.batch = scenes
        on = cells_on(masks.flatten(0, 1), self.backbone.frames[self.look_stage], self.grid)  # (B·T,h,w)
        self.on = on.unflatten(0, masks.shape[:2])  # (B,T,h,w)
        even = torch.full(self.on.shape, 1 / self.on[0, 0].numel())
        own = self.on / self.on.sum((-2, -1), keepdim=True).clamp(min=1)
        self.own = torch.where(scenes.has_mask[..., None, None], own, even)

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
def scenes() -> CaptionBatch:
    data = CaptionScenes(CaptionDataConfig(name="scenes", glyphs="pack"), "test")
    found = data.of_pictures(torch.arange(30))
    return found[found.has_mask.any(1).nonzero().squeeze(1)]


def edits_of(model: Reading) -> dict:
    model.eval()
    return word_edits(model, model.encode(model.batch.images), model.batch).interventions()["model"]


def test_a_word_that_is_read_from_its_map_is_lost_without_it(scenes: CaptionBatch) -> None:
    found = edits_of(Reading(scenes))
    changed = found["edits"]["changed"]["all"]
    assert changed["zero_target"] > 0.9
    assert changed["target_removed"] > 0.9
    assert found["scores"]["edit_necessity"] == pytest.approx(1, abs=0.1)
    assert changed["zero_random"] == changed["keep_target"] == 0
    assert found["baselines"]["random_cells"]["edit_necessity"] == 0


def test_a_word_that_is_known_by_heart_stays(scenes: CaptionBatch) -> None:
    changed = edits_of(ByHeart(scenes))["edits"]["changed"]
    assert all(share == 0 for by in changed.values() for share in by.values())
