"""Weights on sentences, edited: of an oracle that needs its facts, of noise and of a constant."""

from __future__ import annotations

import pytest
import torch

from saccade.families.story.edits import _evened, _permuted, _reduced, weight_edits
from story_stubs import LOOKS, Constant, Noise, Oracle, StubModel, toy_questions, toy_words

ASKED = toy_questions(40)
WORDS = toy_words(ASKED)


def edits(model: type[StubModel]) -> dict:
    return weight_edits(model(WORDS), ASKED, WORDS, torch.arange(len(ASKED))).interventions()["model"]


def test_an_oracle_needs_its_facts_and_they_are_enough() -> None:
    """Without its facts in weights it says what it says without them in the story; with them alone it is right."""
    found = edits(Oracle)
    changed = found["edits"]["changed"]["all"]
    assert found["scores"]["edit_necessity"] == pytest.approx(1)
    assert found["scores"]["edit_sufficiency"] == pytest.approx(1)
    assert changed["zero_target"] == changed["target_removed"] > 0.5
    assert changed["zero_random"] == changed["keep_target"] == changed["target_alone"] == 0
    assert found["baselines"]["random_cells"]["edit_necessity"] == 0
    assert set(found["edits"]["changed"]) == {
        "all",
        f"{LOOKS[0]}, later recomputed",
        f"{LOOKS[0]}, later frozen",
        LOOKS[1],
    }


def test_a_constant_answer_never_changes() -> None:
    changed = edits(Constant)["edits"]["changed"]
    assert all(share == 0 for by in changed.values() for share in by.values())


def test_noise_needs_any_sentence_as_much_as_its_facts() -> None:
    found = edits(Noise)
    assert found["scores"]["edit_necessity"] == pytest.approx(
        found["baselines"]["random_cells"]["edit_necessity"], abs=0.15
    )


def test_even_and_permuted_weights_by_hand() -> None:
    """Three sentences, an empty slot and an end fact, which keep their weight."""
    weights = torch.tensor([[0.5, 0.25, 0.0, 0.125, 0.125]])
    present = torch.tensor([[True, True, True, False]])
    assert _evened(weights, present).tolist() == [[0.25, 0.25, 0.25, 0.125, 0.125]]
    chance = torch.tensor([[0.9, 0.1, 0.5, 0.0]])  # so the second comes first, then the third, then the first
    assert _permuted(weights, present, chance).tolist() == [[0.25, 0.0, 0.5, 0.125, 0.125]]


def test_a_story_without_its_facts_and_with_them_alone() -> None:
    asked = ASKED[0]
    without, alone = _reduced(asked, keeps=False), _reduced(asked, keeps=True)
    assert len(without.sentences) + len(alone.sentences) == len(asked.sentences)
    assert list(alone.sentences) == [asked.sentences[at] for at in sorted(asked.supporting)]
