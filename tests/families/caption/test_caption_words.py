"""Words of photographs: what altering their maps takes from them, for a model that reads known pixels."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from caption_stubs import captioned_files
from saccade import geometry
from saccade.families.caption.data import CaptionDataConfig, CaptionFiles
from saccade.families.caption.evidence import CONTENT, FUNCTION, add_words, kind_of
from saccade.families.caption.scores import CaptionScoring
from saccade.families.caption.task import CaptionTask
from saccade.families.caption.vocabulary import Vocabulary
from saccade.models.sat import SatConfig, SatModel
from saccade.tasks.evaluate import Kept, evaluate
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


def scored(maps: dict[int, Tensor]) -> Kept:
    """ "a dog runs on" of a bright picture, "a cat sleeps on" of a dark one."""
    images = torch.stack([torch.full((3, SIDE, SIDE), shade) for shade in (0.9, 0.1)])
    said = torch.tensor(
        [[WORDS.number(word) for word in text.split()] + [0] for text in ("a dog runs on", "a cat sleeps on")]
    )
    scores = Kept()
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


def test_a_picture_without_a_lender_has_no_patch() -> None:
    said = torch.tensor([[DOG, RUNS, 0], [DOG, SLEEPS, 0]])  # both have a dog
    scores = Kept()
    add_words(scores, ReadsColumns(ORACLE).eval(), torch.rand(2, 3, SIDE, SIDE), said, torch.tensor([0]), WORDS)
    means = scores.acts.means()
    assert math.isnan(means["word_evidence_patch_raw"])
    assert not math.isnan(means["word_evidence_blur_raw"])


def test_evaluating_photographs_tells_word_evidence_of_a_sample(tmp_path: Path) -> None:
    config = CaptionDataConfig(name=f"csv:{captioned_files(tmp_path)}", size=(SIDE, SIDE))
    vocabulary = Vocabulary(("a", "dog", "runs", "cat", "sleeps", "two", "dogs", "run", "in", "the", "snow"))
    data = CaptionFiles(config, CaptionTask.read(config), "train", vocabulary=vocabulary)
    torch.manual_seed(0)
    model = SatModel(
        SatConfig(vocabulary=len(vocabulary), backbone="small", through="stage2", input_size=(SIDE, SIDE), embed=8,
                  hidden=8, attention=8, longest=6)
    ).eval()  # fmt: skip
    told = []
    found = evaluate(CaptionScoring(model, data, beam=1, sweeps=3), lambda done, total: told.append((done, total)))
    assert found["counts"]["altered_pictures"] == 3
    assert found["counts"].get("word_evidence_blur_raw", 0) <= 18
    assert told[-1][0] == told[-1][1]
    none = evaluate(CaptionScoring(model, data, beam=1, sweeps=0))
    assert "altered_pictures" not in none["counts"]
    assert not none["baselines"]
