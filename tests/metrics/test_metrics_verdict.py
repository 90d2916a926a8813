"""The verdict: against guessing and against chance, on examples whose truth is known."""

from __future__ import annotations

import pytest
import torch

from saccade.metrics.maps.scorer import Baseline, MapScorer
from saccade.metrics.verdict import against_chance, against_guessing


def rights(share: float, count: int = 200) -> torch.Tensor:
    return (torch.arange(count) < share * count).double()


def test_a_model_that_lost_to_guessing_is_told() -> None:
    found = against_guessing(
        rights(0.3), {"training_prior": rights(0.4), "training_prior_by_query": rights(0.6)}, torch.arange(200)
    )
    assert found["guess"] == "training_prior_by_query"  # the better of the two
    assert found["says"].startswith(
        "30.0 % against 60.0 % by guessing from the question: it has lost to guessing (-30.0"
    )
    assert found["interval"][1] < 0


def test_a_model_that_beats_guessing_and_one_of_which_it_cannot_be_told() -> None:
    habit = {"commonest_label": rights(0.5)}
    assert "it beats guessing by 40.0 points (+" in against_guessing(rights(0.9), habit, torch.arange(200))["says"]
    level = against_guessing(rights(0.52), habit, torch.arange(200))
    assert "no difference from guessing detected" in level["says"]
    assert level["interval"][0] < 0 < level["interval"][1]
    assert (
        "too few pictures"
        in against_guessing(rights(1, 1), {"commonest_label": rights(0, 1)}, torch.zeros(1).long())["says"]
    )
    assert against_guessing(rights(0.5), {}, torch.arange(200)) == {}


def test_pictures_are_the_unit() -> None:
    """200 questions about two pictures are two pieces of evidence, not 200."""
    picture = torch.arange(200) // 100
    habit = {"commonest_label": rights(0.4)}
    assert "beats" in against_guessing(rights(0.6), habit, torch.arange(200))["says"]
    assert "no difference" in against_guessing(rights(0.6), habit, picture)["says"]


def scorer(chance: str) -> MapScorer:
    """40 maps that peak on the evidence in 3 of 4 cases; the baseline ``chance`` does so in every second."""
    evidence = torch.zeros(40, 4, 4, dtype=torch.bool)
    evidence[:, 0, 0] = True
    maps, blind = torch.zeros(40, 4, 4), torch.zeros(40, 4, 4)
    maps[:30, 0, 0], maps[30:, 3, 3] = 1.0, 1.0
    blind[::2, 0, 0], blind[1::2, 3, 3] = 1.0, 1.0
    found = MapScorer(scores=("pointing",), baselines=("uniform", "centre_gaussian"))
    found.add(maps, evidence, beside={chance: Baseline(blind, torch.ones(40, dtype=torch.bool))})
    return found


@pytest.mark.parametrize("name", ["box_centre", "part_prior"])
def test_chance_is_the_best_of_centre_box_and_part_prior(name: str) -> None:
    found = against_chance(scorer(name))
    assert (found["chance"], found["chance_value"], found["value"]) == (name, 0.5, 0.75)
    assert "1.5 × as often as by chance" in found["says"]


def test_the_models_own_habit_and_other_networks_are_not_chance() -> None:
    assert against_chance(scorer("hirescam"))["chance"] == "uniform"
